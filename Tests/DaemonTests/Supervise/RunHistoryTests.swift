import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("The history of workers' runs") struct RunHistoryTests {
  private let world: RestartWorld
  private var supervisor: RestartSupervisor { world.supervisor }
  private let web = WorkerID("web")

  init() throws { world = try RestartWorld() }

  @Test("The last five ends of a worker are kept, each with the measurements of its own run")
  func history() {
    world.add()
    let earlier = (1...4).map {
      ExitRecord(
        at: Int64($0), why: "exited with status \($0)", status: .unknown, footprint: .zero)
    }
    supervisor.add(web, exits: earlier)
    world.launch()
    supervisor.record(footprint: .megabytes(3), lastLine: "no route", of: web)
    world.end()
    world.run("web", .exited(.signaled(9)))
    let exits = supervisor.histories[web]?.exits ?? []
    #expect(exits.map(\.at) == [2, 3, 4, 1_795_341_600, 1_795_341_600])
    #expect(exits.map(\.footprint) == [.zero, .zero, .zero, .megabytes(3), .zero])
    #expect(exits.map(\.lastWords) == [nil, nil, nil, "no route", nil])
  }

  @Test func `The environment of a launch describes the worker's last run, and not the daemon's`() {
    world.add()
    let base = ["PATH": "/bin", "DORMOUSE_LAST_EXIT": "the daemon's", "DORMOUSE_RESTARTS": "7"]
    #expect(supervisor.environment(of: web, over: base) == ["PATH": "/bin"])
    world.launch()
    supervisor.record(footprint: .kilobytes(4), lastLine: nil, of: web)
    world.end("web", .exited(.signaled(9)))
    world.timers.advance(by: .seconds(1))
    #expect(
      supervisor.environment(of: web, over: base) == [
        "PATH": "/bin", "DORMOUSE_LAST_EXIT": "ended by SIGKILL",
        "DORMOUSE_LAST_EXIT_TIME": "1795341600",
        "DORMOUSE_LAST_EXIT_FOOTPRINT": "\(ByteCount.kilobytes(4).bytes)",
        "DORMOUSE_RESTARTS": "1", "DORMOUSE_LAST_EXIT_STATUS": "137",
      ])
  }

  @Test func `A start is answered once, when the worker stays or when it has ended`() {
    world.add()
    var ends: [Answer?] = []
    world.launch()
    #expect(supervisor.watch(web) { ends.append($0) })
    #expect(!supervisor.watch(web) { ends.append($0) })
    #expect(supervisor.isWatched(web))
    supervisor.stays(web)
    #expect(ends == [nil, nil] && !supervisor.isWatched(web))
    world.end()
    #expect(ends.count == 2)

    world.launch("web", for: .milliseconds(300))
    #expect(supervisor.watch(web) { ends.append($0) })
    supervisor.record(leftBehind: 2, by: web)
    supervisor.record(footprint: .zero, lastLine: "no such module", of: web)
    world.end()
    supervisor.stays(web)
    #expect(ends.count == 3)
    let end = ends.last.flatMap(\.self)
    #expect(end?.code == .failed)
    for expected in [
      "web ended 300 ms after its launch: exited with status 4",
      "its other processes were ended with it",
      "it restarts in 2 s", "last output: no such module",
    ] { #expect(end?.text.contains(expected) == true, "\(expected)") }
  }

  @Test func `A worker that ends with status 0 and leaves nothing behind has succeeded`() {
    world.add("web", RestartRules(.onFailure))
    var ends: [Answer?] = []
    world.launch()
    _ = supervisor.watch(web) { ends.append($0) }
    world.end("web", .exited(.exited(0)))
    #expect(ends.map { $0?.code } == [.done])
    // The processes that an earlier run left behind don't count for this run.
    world.launch()
    supervisor.record(leftBehind: 1, by: web)
    world.end("web", .exited(.exited(0)))
    world.launch()
    _ = supervisor.watch(web) { ends.append($0) }
    world.end("web", .exited(.exited(0)))
    #expect(ends.map { $0?.code } == [.done, .done])
  }

  @Test func `A start of a worker that is removed, or doesn't exist, is answered`() {
    world.add()
    var ends: [Answer?] = []
    world.launch()
    _ = supervisor.watch(web) { ends.append($0) }
    supervisor.remove(web)
    #expect(ends == [nil])
    #expect(!supervisor.watch(web) { ends.append($0) })
    #expect(ends == [nil, nil])
  }
}
