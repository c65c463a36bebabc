import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("Workers' runs, and restarts after them") struct RunHistoryTests {
  private let world: RestartWorld
  private var supervisor: RestartSupervisor { world.supervisor }
  private let web = WorkerID("web")

  init() throws { world = try RestartWorld() }

  @Test func `The last five ends of a worker are kept, each with its run's measurements`() {
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

  // MARK: workers that were asked to stop

  @Test(arguments: [
    Cause.watchdog("liveness probe failed"), .pressure(.critical), .exited(.signaled(11)),
    .failed("no such program"),
  ])
  func `A worker that was asked to stop while it ended otherwise isn't restarted`(cause: Cause) {
    world.add("web")
    world.launch()
    world.record(to: .terminating, cause)
    supervisor.operatorRequested(.stop, web)
    world.end("web", cause)
    #expect(supervisor.histories[web]?.plan == nil && world.timers.pending.isEmpty)
    #expect(supervisor.histories[web]?.lastEnd?.wasStopped == true)
    // The worker was started since.
    world.run("web", cause)
    #expect(supervisor.histories[web]?.plan != nil)
  }

  @Test func `A start that follows a request to stop permits restarts again`() {
    world.add("web")
    world.launch()
    supervisor.operatorRequested(.stop, web)
    supervisor.operatorRequested(.start, web)
    world.end()
    #expect(world.delay() == .seconds(1))
  }

  @Test func `A worker that was asked to stop and dies during its resume isn't restarted`() {
    world.add("web")
    world.launch()
    world.record(to: .suspending, .idle(.zero))
    supervisor.operatorRequested(.stop, web)
    world.record(to: .suspended, .idle(.zero))
    world.record(to: .resuming, .requested(.stop))
    world.end()
    #expect(supervisor.histories[web]?.plan == nil)
  }

  @Test func `A worker whose stop failed is restarted when it ends by itself later`() {
    world.add("web")
    world.launch()
    world.record(to: .resuming, .requested(.stop))
    supervisor.operatorRequested(.stop, web)
    world.record(to: .hibernated, .failed("its image can't be read"))
    world.end()
    #expect(world.delay() == .seconds(1))
  }

  // MARK: after a shortage of memory

  @Test(arguments: [false, true])
  func `A worker terminated for memory comes back when its last full run has room`(
    isLaunching: Bool
  ) {
    world.add("web", RestartRules())
    supervisor.record(footprint: .megabytes(60), lastLine: nil, of: web)
    if isLaunching { world.run("web", .exited(.exited(0))) }
    world.setMemory(free: .megabytes(40))
    if isLaunching {
      world.driver.request(.start, web) { _ in }
      #expect(world.state(of: "web") == .launching)
      supervisor.record(footprint: .megabytes(5), lastLine: nil, of: web)
    } else {
      world.launch()
    }
    world.end("web", .pressure(.critical))
    world.timers.advance(by: .seconds(120))
    #expect(world.restarted == [] && supervisor.histories[web]?.plan != nil)
    world.setMemory(free: .megabytes(80))
    world.timers.advance(by: .seconds(31))
    #expect(world.restarted == ["web"])
  }

  @Test func `A worker that is larger than the whole memory isn't started again`() {
    world.add()
    world.setMemory(free: .megabytes(16), budget: .megabytes(16))
    supervisor.record(footprint: .megabytes(24), lastLine: nil, of: web)
    world.run("web", .pressure(.critical))
    world.timers.advance(by: .seconds(600))
    #expect(world.restarted == [] && supervisor.histories[web]?.plan == nil)
    let problem = supervisor.histories[web]?.problem
    #expect(problem?.text.hasPrefix("not restarted: it had 24 MB") == true)
  }
}
