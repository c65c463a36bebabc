import Lifecycle
import Testing

@testable import Daemon

@Suite("The daemon's end") struct DaemonEndTests {
  private let world = DaemonEndWorld()
  private let end: DaemonEnd

  init() { end = world.makeEnd() }

  private func hasStopped(_ name: String) {
    world.set(name) { $0.state = .terminated }
    end.engineIsQuiet()
  }

  // MARK: with its workers

  @Test("A worker is stopped before those that it depends on")
  func order() {
    world.add("db")
    world.add("api", .hibernated, needs: ["db"])
    world.add("web", needs: ["api"])
    end.end()
    #expect(end.phase.isEnding && end.phase.isClosing)
    #expect(world.asked == ["stop web"])
    hasStopped("web")
    #expect(world.asked == ["stop web", "stop api"])
    hasStopped("api")
    #expect(world.asked == ["stop web", "stop api", "stop db"] && !end.hasEnded)
    hasStopped("db")
    #expect(end.hasEnded)
  }

  @Test("Workers that don't depend on each other are stopped at the same time, and each once")
  func atOnce() {
    world.add("one")
    world.add("two", .suspended)
    world.add("gone", .terminated)
    end.end()
    end.engineIsQuiet()
    end.engineIsQuiet()
    #expect(world.asked == ["stop one", "stop two"])
  }

  @Test("A worker that can't be killed doesn't delay the stop of those that it depends on")
  func unstoppable() {
    world.add("db")
    world.add("web", needs: ["db"])
    end.end()
    world.answer("web", .failed, "it can't be killed")
    #expect(world.asked == ["stop web", "stop db"])
    hasStopped("db")
    #expect(!end.hasEnded, "web still runs")
    hasStopped("web")
    #expect(end.hasEnded)
  }

  @Test("A worker that ends after a first refusal delays the stop of its dependencies until then")
  func slow() {
    world.add("db")
    world.add("web", needs: ["db"])
    end.end()
    world.answer("web", .refused, "busy")
    #expect(world.asked == ["stop web"])
  }

  @Test("The daemon's last words name processes that it couldn't adopt, and what ends them")
  func unadopted() {
    world.unadopted = [(WorkerID("agent"), 71), (WorkerID("keys"), 72)]
    end.end()
    #expect(end.hasEnded)
    #expect(world.lines.count == 1)
    #expect(world.lines[0].contains("(agent, keys): run `kill -9 71 72`"))
  }

  @Test(
    "Without workers the daemon ends at once, and closes its sockets before it answers clients")
  func nothing() {
    end.end()
    #expect(end.hasEnded)
    #expect(world.calls == ["refuse starts", "close listeners", "announce"])
    #expect(world.lines == ["all workers have ended; the daemon ends"])
    end.engineIsQuiet()
    #expect(world.calls.count { $0 == "announce" } == 1)
  }

  @Test("A worker that is being adopted is stopped when its adoption has ended")
  func adopting() {
    world.add("web", .terminated)
    world.set("web") { $0.isAdopting = true }
    end.end()
    #expect(world.asked == ["stop web"] && !end.hasEnded)
    world.set("web") {
      $0.isAdopting = false
      $0.state = .terminating
    }
    end.engineIsQuiet()
    #expect(!end.hasEnded)
    hasStopped("web")
    #expect(end.hasEnded)
  }

  @Test("An external worker is released and not stopped, and the daemon waits for that")
  func external() {
    world.add("theirs", .hibernated)
    world.set("theirs") { $0.isExternal = true }
    world.add("ours")
    end.end()
    #expect(world.asked == ["release theirs", "stop ours"])
    hasStopped("ours")
    #expect(!end.hasEnded)
    world.isReleased("theirs")
    #expect(end.hasEnded)
  }

  @Test("An external worker that can't be woken keeps the daemon, and the next request tries again")
  func externalStays() {
    world.add("theirs", .hibernated)
    world.set("theirs") { $0.isExternal = true }
    end.end()
    end.end()
    #expect(world.asked == ["release theirs"], "the first one is still under way")
    world.isReleased("theirs", "its image can't be read")
    #expect(!end.hasEnded)
    #expect(
      world.lines == ["theirs: can't be released: its image can't be read; next attempt in 1 s"])
    end.end()
    #expect(world.asked == ["release theirs", "release theirs"])
    world.isReleased("theirs")
    #expect(end.hasEnded)
  }

  @Test("A release that failed is tried again after a growing pause, until it succeeds")
  func externalAgain() {
    world.add("theirs", .hibernated)
    world.set("theirs") { $0.isExternal = true }
    end.end()
    for (count, pause) in [1, 2, 4].enumerated() {
      world.isReleased("theirs", "its image can't be read")
      #expect(world.timers.pending == [.seconds(pause)] && world.asked.count == count + 1)
      world.timers.advance(by: .seconds(pause))
      #expect(world.asked.count == count + 2)
    }
    world.isReleased("theirs")
    #expect(end.hasEnded && world.timers.pending.isEmpty)
  }

  @Test("A stop that failed is requested again, and the daemon ends when the worker has ended")
  func stopAgain() {
    world.add("web", .hibernated)
    end.end()
    world.answer("web", .failed, "web could not be resumed")
    #expect(world.lines == ["web could not be resumed; it is asked to stop again in 1 s"])
    world.timers.advance(by: .seconds(1))
    #expect(world.asked == ["stop web", "stop web"])
    hasStopped("web")
    #expect(end.hasEnded)
  }

  @Test("A second signal ends the daemon at once and leaves the remaining workers running")
  func secondSignal() {
    world.add("web")
    end.signalHasCome()
    #expect(world.asked == ["stop web"] && !end.hasEnded)
    end.signalHasCome()
    #expect(end.hasEnded && world.asked == ["stop web"])
    #expect(world.lines.last?.hasSuffix("workers that still run are left running") == true)
    // Nothing more happens when the worker ends after all.
    hasStopped("web")
    #expect(!world.calls.contains("announce"))
  }

  @Test("The daemon ends without workers that SIGKILL doesn't end, 10 s after the other ones")
  func dead() {
    world.add("hung")
    world.add("well")
    end.end()
    world.set("hung") { $0.hasOutlivedKill = true }
    world.answer("hung", .failed, "hung: no effect of SIGKILL")
    end.engineIsQuiet()
    // It is asked again.
    world.set("hung") { $0.hasOutlivedKill = false }
    world.timers.advance(by: .seconds(60))
    #expect(!end.hasEnded, "another worker is still to end")
    world.remove("well")
    end.engineIsQuiet()
    world.timers.advance(by: .seconds(9))
    #expect(!end.hasEnded)
    world.timers.advance(by: .seconds(1))
    #expect(end.hasEnded && world.calls.contains("save hung background"))
    #expect(world.lines.last?.contains("ends without hung: SIGKILL") == true, "\(world.lines)")
  }
}
