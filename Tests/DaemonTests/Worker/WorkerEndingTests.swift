import Glibc
import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("A worker's end") struct WorkerEndingTests {
  private let world = EndWorld()
  private var ending: WorkerEnding { world.ending }
  private var timers: FakeTimers { world.timers }

  private static let inOrder = ["look", "clear", "reap", "remove group", "read log"]

  @Test("A worker's end takes its steps in order and is reported once, with status and last words")
  func whole() {
    world.status = .exited(3)
    ending.rootHasEnded()
    #expect(ending.hasExited && !ending.isReaped)
    world.succeed(lastLines: ["listening", "no such port"])
    #expect(world.begun == Self.inOrder)
    #expect(world.gone.map(\.status) == [.exited(3)])
    #expect(world.gone.first?.lastLines?.last == "no such port")
    #expect(ending.isReaped && world.isAtRest)
  }

  // MARK: asked

  @Test("The stop signal is sent before the worker is woken for it")
  func asked() {
    world.stopSignal = SIGINT
    ending.terminate()
    #expect(world.begun == ["stop listening", "drop offers", "ask \(SIGINT) and wake"])
    #expect(!ending.hasExited)
  }

  @Test(
    "A connected worker is notified of its end first, and gets the stop signal when it has answered"
  )
  func announced() {
    world.isConnected = true
    ending.terminate()
    #expect(world.begun.last == "wake")
    world.announced.first?()
    #expect(world.begun.last == "ask \(SIGTERM)")
  }

  @Test("A stop command runs while the worker is awake, and the stop signal follows its end")
  func stopCommand() {
    world.hasStopCommand = true
    ending.terminate()
    #expect(world.begun == ["stop listening", "drop offers", "wake"])
    world.stopCommands.first?()
    #expect(world.begun.last == "ask \(SIGTERM) and wake")
  }

  @Test("A stop command that outlives its worker is followed by no signal")
  func lateStopCommand() {
    world.hasStopCommand = true
    ending.terminate()
    world.endRoot()
    let begun = world.begun
    world.stopCommands.first?()
    #expect(world.begun == begun)
  }

  @Test("An end by another signal isn't announced over the worker's socket")
  func aborted() {
    world.isConnected = true
    ending.terminate(by: SIGABRT)
    #expect(world.announced.isEmpty && world.begun.last == "ask \(SIGABRT) and wake")
  }

  @Test("A worker whose memory can't be verified is ended by SIGKILL, because it must not run")
  func unverified() {
    world.isMemoryUnverified = true
    ending.terminate()
    #expect(world.begun == ["stop listening", "kill"] && ending.isKilled)
  }

  @Test("A worker's end continues when the worker couldn't be woken for it")
  func notWoken() {
    ending.terminate()
    world.woken.first?("a thread doesn't go on")
    #expect(world.lines == ["can't be woken before its end: a thread doesn't go on"])
    ending.rootHasEnded()
    world.succeed()
    #expect(world.gone.count == 1)
  }

  @Test("A SIGKILL that failed is sent again after pauses that double, until the process has ended")
  func killedAgain() {
    ending.kill()
    for (count, pause) in [1, 2, 4, 8, 16, 32, 60, 60].enumerated() {
      world.kills.last?("not permitted")
      #expect(timers.pending == [.seconds(pause)] && world.kills.count == count + 1)
      timers.advance(by: .seconds(pause))
      #expect(world.kills.count == count + 2)
    }
    #expect(world.lines.prefix(2) == ["not permitted", "next SIGKILL in 1 s"])
    world.kills.last?("not permitted")
    ending.rootHasEnded()
    world.succeed()
    #expect(world.kills.count == 9 && world.gone.count == 1 && world.isAtRest)
  }

  @Test("Another SIGKILL replaces the one that was to follow a failed one")
  func killedMeanwhile() {
    ending.kill()
    world.kills.last?("not permitted")
    ending.kill()
    world.kills.last?(nil)
    timers.advance(by: .seconds(60))
    #expect(world.kills.count == 2)
  }

  @Test("No SIGKILL follows a failed one when the run is replaced")
  func notKilledAfterwards() {
    ending.kill()
    world.kills.last?("not permitted")
    ending.end()
    #expect(timers.pending.isEmpty)
  }

  @Test("No stop signal is sent when the root process has ended")
  func askedTooLate() {
    ending.rootHasEnded()
    ending.terminate()
    #expect(world.begun == ["look"])
  }

  // MARK: what is left

  @Test("Processes that may still save their work are waited for, until a SIGKILL or their own end")
  func saving() {
    world.isTerminating = true
    world.endRoot(leaving: WhatIsLeft(isEmpty: false, others: 1))
    #expect(world.begun == ["look"])
    timers.advance(by: WorkerEnding.savingInterval)
    #expect(world.begun == ["look", "look"], "they are looked for again")
    ending.kill()
    world.kills.last?(nil)
    world.looked(WhatIsLeft(isEmpty: false, others: 1))
    #expect(world.begun.last == "clear")
  }

  @Test("Processes that an unrequested end leaves behind are cleared at once, which is logged")
  func unexpected() {
    world.endRoot(leaving: WhatIsLeft(isEmpty: false, others: 2))
    world.cleared(Clearing(strays: 1))
    #expect(world.leftBehind == [3])
    #expect(
      world.lines.first?.hasPrefix(
        "its first process has ended; its 3 other processes are ended with it") == true)
  }

  @Test("A worker's end continues when its processes aren't found within 15 s")
  func lookIsLost() {
    ending.rootHasEnded()
    timers.advance(by: WorkerEnding.patience)
    #expect(world.begun == ["look", "clear"])
    world.looked()
    #expect(world.begun == ["look", "clear"], "the outcome is too late")
    world.cleared()
    #expect(world.leftBehind == [0])
  }

  // MARK: clearing

  @Test(
    "Failed clearing is repeated after pauses that double, and the end continues after the last try"
  )
  func tries() {
    world.endRoot()
    for pause in [1, 2, 4, 8, 16] {
      world.cleared(Clearing(failure: "not permitted"))
      #expect(timers.pending == [.seconds(pause)] && world.gone.isEmpty)
      timers.advance(by: .seconds(pause))
    }
    #expect(world.clearings.count == WorkerEnding.maxTries)
    world.cleared(Clearing(failure: "not permitted"))
    #expect(world.begun.suffix(2) == ["reap", "remove group"])
    #expect(world.lines.first == "can't kill all of its processes: not permitted")
  }

  @Test("Processes that a failed clearing has ended aren't counted")
  func failedTryCountsNothing() {
    world.endRoot(leaving: WhatIsLeft(isEmpty: false, others: 1))
    world.cleared(Clearing(strays: 4, failure: "new ones come faster than they are ended"))
    timers.advance(by: .seconds(1))
    world.cleared(Clearing(strays: 2))
    #expect(world.leftBehind == [3])
  }

  @Test("A worker's end continues without another try when clearing has no outcome within 15 s")
  func clearingIsLost() {
    world.endRoot()
    timers.advance(by: WorkerEnding.patience)
    #expect(world.begun.suffix(2) == ["reap", "remove group"])
    #expect(world.clearings.count == 1)
    #expect(
      world.lines == ["can't kill all of its processes: can't look for its remaining processes"])
    world.cleared(Clearing(failure: "late"))
    #expect(world.clearings.count == 1 && world.lines.count == 1)
  }

  @Test("An outcome that comes twice is taken once, also during the pause before the next try")
  func repeated() {
    world.endRoot()
    let first = world.clearings.last
    first?(Clearing(failure: "not permitted"))
    first?(Clearing())
    #expect(!world.begun.contains("reap"))
    timers.advance(by: .seconds(1))
    first?(Clearing())
    #expect(!world.begun.contains("reap"), "it isn't the outcome of the second try")
    world.cleared()
    #expect(world.begun.contains("reap"))
  }

  // MARK: the group and the last words

  @Test("A worker's end is reported when its cgroup can't be removed, and the failure is logged")
  func groupStays() {
    world.endRoot()
    world.cleared()
    world.removals.last?("the group is busy")
    world.readings.last?(nil)
    #expect(world.lines == ["the group is busy"] && world.gone.count == 1)
  }

  @Test("A worker's end is reported when removing the cgroup and reading the log have no outcome")
  func tidyingIsLost() {
    world.endRoot()
    world.cleared()
    timers.advance(by: WorkerEnding.patience)
    #expect(world.begun.last == "read log")
    #expect(world.lines == ["can't remove its cgroup within 15 s"])
    timers.advance(by: WorkerEnding.patience)
    #expect(world.gone.count == 1 && world.gone.first?.lastLines == nil)
    #expect(world.isAtRest)
  }

  // MARK: other runs

  @Test("The end of an external worker ends no processes and waits for nothing")
  func external() {
    world.isExternal = true
    world.endRoot(leaving: WhatIsLeft(isEmpty: false, others: 5))
    #expect(world.externalEnds == 1 && world.begun == ["look"])
    #expect(world.gone.isEmpty && world.isAtRest)
  }

  @Test("A run that is closed during its end has no effect on the next run", arguments: 0..<5)
  func nextRun(step: Int) {
    let steps: [() -> Void] = [
      { ending.kill() }, { ending.rootHasEnded() }, { world.looked() }, { world.cleared() },
      { world.removals.last?(nil) },
    ]
    for each in steps.dropFirst(step == 0 ? 0 : 1).prefix(max(1, step)) { each() }
    ending.end()
    let next = EndWorld(timers)
    next.ending.terminate()
    #expect(world.isAtRest && world.gone.isEmpty)
    #expect(!next.ending.hasExited && next.gone.isEmpty)
  }
}
