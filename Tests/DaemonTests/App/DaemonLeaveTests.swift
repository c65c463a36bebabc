import Glibc
import Lifecycle
import Testing

@testable import Daemon

@Suite("The daemon's end without its workers") struct DaemonLeaveTests {
  private let ending: DaemonEndWorld
  private var end: DaemonEnd { ending.end }

  init() throws { ending = try DaemonEndWorld() }

  @Test func `Workers that are left stay as they are, and are recorded`() throws {
    try ending.add("awake", .foreground)
    try ending.addFrozen("frozen", .suspended)
    try ending.add("gone", .terminated)
    end.leave()
    #expect(end.hasEnded && end.phase.isLeaving && !end.phase.isEnding)
    #expect(ending.asked == [])
    #expect(ending.saved("awake") == "foreground" && ending.saved("frozen") == "suspended")
    #expect(ending.saved("gone") == nil)
    #expect(
      ending.hasLogged(
        "the daemon ends; 2 workers remain, 1 of them asleep until a daemon starts or "
          + "`dormouse recover` is run"))
  }

  @Test func `A sleeper that isn't frozen is woken before the daemon leaves it`() throws {
    try ending.add("web", .suspended)
    end.leave()
    end.engineDidBecomeQuiet()
    #expect(ending.asked == ["wake web"] && !end.hasEnded)
    ending.didWake("web")
    #expect(end.hasEnded && ending.hasLogged("the daemon ends; 1 worker remains"))
  }

  @Test func `The daemon doesn't leave before the engine has handled every event`() throws {
    let web = try ending.add("web", .suspended)
    end.leave()
    var hadEnded: [Bool?] = []
    ending.world.notes.whenHandled = { [weak end = ending.end, weak driver = ending.world.driver] in
      hadEnded.append(end?.hasEnded)
      if case .resumed = $0 { driver?.send(.footprint(web.id, .megabytes(1))) }
    }
    ending.didWake("web")
    #expect(hadEnded == [false, false] && end.hasEnded)
  }

  @Test func `A daemon that leaves suspends no worker that only a signal would stop`() throws {
    try ending.addFrozen("frozen", .suspending)
    let web = try ending.add("web", .suspending)
    #expect(end.refusalToSuspend(web.id) == nil)
    end.leave()
    #expect(end.refusalToSuspend(web.id) != nil && end.refusalToSuspend(WorkerID("unknown")) != nil)
    #expect(end.refusalToSuspend(WorkerID("frozen")) == nil)
  }

  @Test func `A sleeping worker that can't be woken is left asleep`() throws {
    try ending.add("web", .suspended)
    end.leave()
    #expect(!end.hasEnded)
    ending.cantBeWoken("web")
    #expect(end.hasEnded && ending.asked == ["wake web"])
    #expect(ending.saved("web") == "suspended")
    #expect(ending.hasLogged("its image can't be read"))
  }

  @Test func `The daemon leaves when no state change and no adoption is under way`() throws {
    try ending.add("passing", .suspending)
    let adopted = try ending.add("adopted", .terminated)
    ending.world.returning.begin(adopted.id)
    end.leave()
    ending.send({ .suspendFailed($0, "it is busy") }, "passing")
    #expect(!end.hasEnded)
    ending.world.returning.finish(adopted.id)
    end.engineDidBecomeQuiet()
    #expect(end.hasEnded && ending.asked.isEmpty)
  }

  @Test func `The daemon doesn't leave a worker while an operation on it is under way`() throws {
    let worker = try ending.add("web")
    let memory = FakeMemory()
    ending.world.makeSleeps(over: memory).makeSleep(for: worker)
    worker.sleep?.resume()
    end.leave()
    #expect(!end.hasEnded)
    memory.thawed?(nil)
    end.engineDidBecomeQuiet()
    #expect(end.hasEnded)
  }

  @Test(arguments: [true, false])
  func `The daemon leaves when a launch is over, and has its record`(succeeds: Bool) throws {
    let worker = try ending.add("web", .terminated)
    ending.world.driver.request(.start, worker.id) { _ in }
    ending.world.workers.launching = [worker.id]
    end.leave()
    // The child is forked and doesn't run its program yet: without the launcher nothing would
    // record it.
    end.engineDidBecomeQuiet()
    #expect(!end.hasEnded)
    ending.world.workers.launching = []
    if succeeds {
      worker.process = try .forTest("web")
      ending.send(Event.launched, "web")
    } else {
      ending.send({ .launchFailed($0, "no such file") }, "web")
    }
    #expect(end.hasEnded && (ending.saved("web") != nil) == succeeds)
  }

  @Test func `A start that waits for a dependency is refused when the daemon leaves`() throws {
    try ending.add("db", .terminated)
    let web = try ending.add("web", .terminated, needs: ["db"])
    var answers: [Answer] = []
    ending.world.starter.start(web.id) { answers.append($0) }
    #expect(answers == [])
    // The launcher is launching this worker.
    ending.world.workers.launching = [WorkerID("db")]
    end.leave()
    #expect(answers == [Answer(.refused, "the daemon is ending")] && !end.hasEnded)
  }

  @Test func `A worker that outlives SIGKILL doesn't keep a daemon that leaves`() throws {
    try ending.world.driver.request(.stop, ending.add("web").id) { _ in }
    end.leave()
    #expect(!end.hasEnded)
    ending.outlivesKill("web")
    end.engineDidBecomeQuiet()
    #expect(end.hasEnded && ending.saved("web") == "terminating")
  }

  @Test func `A daemon that ends doesn't leave, and a second leave adds nothing`() throws {
    try ending.add("web")
    end.end()
    end.leave()
    #expect(!end.phase.isLeaving && ending.asked == ["stop web"])

    let other = try DaemonEndWorld()
    try other.addWaking("web")
    other.end.leave()
    other.end.leave()
    #expect(other.lines.count == 1 && !other.end.hasEnded)
  }

  @Test func `A request to end that comes while the daemon leaves stops its workers`() throws {
    try ending.addWaking("web")
    end.leave()
    end.end()
    #expect(ending.asked == ["wake web", "stop web"] && !end.hasEnded)
    ending.didWake("web")
    #expect(!end.hasEnded, "it is quiet, but web is to end")
    ending.didStop("web")
    #expect(end.hasEnded && end.phase.isEnding)
  }
}
