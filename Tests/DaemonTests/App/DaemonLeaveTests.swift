import Lifecycle
import Testing

@testable import Daemon

@Suite("The daemon's end without its workers") struct DaemonLeaveTests {
  private let world = DaemonEndWorld()
  private let end: DaemonEnd

  init() { end = world.makeEnd() }

  private func hasStopped(_ name: String) {
    world.set(name) { $0.state = .terminated }
    end.engineIsQuiet()
  }

  @Test("Workers that are left stay as they are, are recorded, and their sockets stay open")
  func leave() {
    world.add("awake", .foreground)
    world.add("frozen", .hibernated)
    world.set("frozen") { $0.restsFrozen = true }
    world.add("gone", .terminated)
    end.leave()
    #expect(end.hasEnded && end.phase.isLeaving && !end.phase.isEnding)
    #expect(
      world.calls == [
        "refuse starts", "save awake foreground", "save frozen hibernated", "announce",
      ])
    #expect(
      world.lines.last
        == "the daemon ends; 2 workers remain, 1 of them asleep until a daemon starts or "
        + "`dormouse recover` is run")
  }

  @Test(
    "A sleeping worker that only a signal or a tracer holds is woken before the daemon leaves it")
  func leaveStopped() {
    world.add("web", .suspended)
    end.leave()
    end.engineIsQuiet()
    #expect(world.asked == ["wake web"] && !end.hasEnded)
    world.set("web") { $0.state = .resuming }
    end.engineIsQuiet()
    world.set("web") { $0.state = .background }
    world.answer("web")
    #expect(end.hasEnded)
    #expect(world.lines.last == "the daemon ends; 1 worker remains")
  }

  @Test("While the daemon leaves, a worker that only a signal would hold isn't suspended again")
  func noSuspension() {
    #expect(end.refusalToSuspend(WorkerID("web")) == nil)
    end.leave()
    #expect(end.refusalToSuspend(WorkerID("web")) != nil)
    #expect(end.refusalToSuspend(WorkerID("frozen")) == nil)
  }

  @Test(
    "A sleeping worker that can't be woken is left asleep, although the answer comes last")
  func unwakeable() {
    world.add("web", .hibernated)
    end.leave()
    end.engineIsQuiet()
    #expect(!end.hasEnded)
    world.answer("web", .failed, "web can't be woken: its image can't be read")
    #expect(end.hasEnded && world.asked == ["wake web"])
    #expect(world.calls.contains("save web hibernated"))
    #expect(world.lines.contains("web can't be woken: its image can't be read"))
  }

  @Test("The daemon leaves when no operation, no state change and no adoption is under way")
  func leaveWaits() {
    world.add("busy")
    world.set("busy") { $0.isBusy = true }
    world.add("passing", .suspending)
    world.add("adopted", .terminated)
    world.set("adopted") { $0.isAdopting = true }
    end.leave()
    world.set("busy") { $0.isBusy = false }
    end.engineIsQuiet()
    world.set("passing") { $0.state = .background }
    end.engineIsQuiet()
    #expect(!end.hasEnded)
    world.set("adopted") {
      $0.isAdopting = false
      $0.state = .background
    }
    end.engineIsQuiet()
    #expect(end.hasEnded && world.asked.isEmpty)
  }

  @Test("A start that waits for a dependency is refused when the daemon leaves its workers")
  func leaveRefusesStarts() {
    world.add("web", .resuming)
    end.leave()
    #expect(world.calls == ["refuse starts"] && !end.hasEnded)
  }

  @Test("The daemon doesn't leave before the engine has handled every event")
  func leaveAfterEvents() {
    world.add("web", .suspended)
    end.leave()
    world.set("web") { $0.state = .background }
    // The answer is one of several outcomes of an event.
    world.isEngineQuiet = false
    world.answer("web")
    #expect(!end.hasEnded)
    world.isEngineQuiet = true
    end.engineIsQuiet()
    #expect(end.hasEnded)
  }

  @Test("A worker that has outlived SIGKILL doesn't keep a daemon that leaves, and is recorded")
  func leaveUnkillable() {
    world.add("web", .terminating)
    end.leave()
    #expect(!end.hasEnded)
    world.set("web") { $0.hasOutlivedKill = true }
    end.engineIsQuiet()
    #expect(end.hasEnded && world.asked.isEmpty)
    #expect(world.calls.contains("save web terminating"))
  }

  @Test(
    "A daemon that is ending refuses to leave its workers, and a second request to leave adds nothing"
  )
  func leaveLate() {
    world.add("web")
    end.end()
    end.leave()
    #expect(!end.phase.isLeaving && world.asked == ["stop web"])

    let other = DaemonEndWorld()
    other.add("web", .resuming)
    let leaving = other.makeEnd()
    leaving.leave()
    leaving.leave()
    #expect(other.lines.count == 1 && !leaving.hasEnded)
  }

  @Test("A request to end that comes while the daemon leaves stops its workers")
  func endWhileLeaving() {
    world.add("web", .resuming)
    end.leave()
    end.end()
    #expect(world.asked == ["stop web"] && !end.hasEnded)
    world.set("web") { $0.state = .background }
    end.engineIsQuiet()
    #expect(!end.hasEnded, "it is quiet, but web is to end")
    hasStopped("web")
    #expect(end.hasEnded && world.calls.contains("close listeners"))
  }
}
