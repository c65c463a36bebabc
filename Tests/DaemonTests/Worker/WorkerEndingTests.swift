import Glibc
import Lifecycle
import Policy
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("A worker's end") struct WorkerEndingTests {
  private let world: EndWorld
  private var ending: WorkerEnding { world.ending }
  private var processes: FakeWorkerProcesses { world.processes }
  private var timers: FakeTimers { world.timers }

  init() throws { world = try EndWorld() }

  private static let inOrder = ["look", "clear", "reap", "remove group", "read log"]

  @Test("A worker's end takes its steps in order and is reported once, with status and last words")
  func whole() {
    processes.exit = .exited(3)
    ending.rootHasEnded()
    #expect(ending.hasExited && !ending.isReaped)
    processes.succeed(lastLines: ["listening", "no such port"])
    #expect(world.begun == Self.inOrder)
    #expect(world.gone == [.exited(3)])
    #expect(world.world.keptLines[world.runtime.id] == ["listening", "no such port"])
    #expect(ending.isReaped && world.isAtRest)
  }

  // MARK: asked

  @Test("Nothing wakes a worker that is asked to end; its stop signal is sent before it is woken")
  func asked() throws {
    world.runtime.configuration.stopSignal = SIGINT
    let watch = try #require(world.runtime.wakeWatch)
    watch.listen(at: .success(try FakeInputs()))
    var isWatching: [Bool] = []
    processes.whenAsked = { isWatching.append(watch.isWatching) }
    #expect(watch.isWatching)
    ending.terminate()
    #expect(world.begun == ["ask \(SIGINT) and wake"] && isWatching == [false])
    #expect(!ending.hasExited)
  }

  /// It has connected to `DORMOUSE_WORKER_SOCKET`.
  private func connect() throws -> WorkersEnd {
    let world = world.world
    var channels = WorkerChannels()
    channels.talk = try WorkerSocket(path: world.scratch.uniquePath("worker"))
    world.conversations.makeConversation(self.world.runtime, over: channels)
    try self.world.runtime.conversation?.listenToConnections()
    let path = try #require(self.world.runtime.conversation?.workerSocketPath)
    let worker = try WorkersEnd(path)
    try world.watches.serve()
    _ = try worker.hear()
    return worker
  }

  @Test(
    "A connected worker is notified of its end first, and gets the stop signal when it has answered"
  )
  func announced() throws {
    let worker = try connect()
    ending.terminate()
    #expect(world.begun == ["wake"])
    let asked = try #require(try worker.hear().requests.first)
    guard case .willTerminate = asked.request else {
      Issue.record("\(asked)")
      return
    }
    try worker.say(.done(id: asked.id))
    try world.world.watches.serve()
    #expect(world.begun.last == "ask \(SIGTERM)")
  }

  @Test("A stop command runs while the worker is awake, and the stop signal follows its end")
  func stopCommand() throws {
    world.runtime.configuration.stopCommand = ["true"]
    ending.terminate()
    #expect(world.begun == ["wake"])
    #expect(
      try eventually {
        try world.world.loop.serve()
        return world.begun.count == 2
      })
    #expect(world.begun.last == "ask \(SIGTERM) and wake")
  }

  @Test("A stop command that outlives its worker is followed by no signal")
  func lateStopCommand() {
    world.runtime.configuration.stopCommand = ["sleep", "1000"]
    ending.terminate()
    world.endRoot()
    let begun = world.begun
    timers.advance(by: .seconds(10))
    #expect(world.begun == begun)
    #expect(world.lines.contains { $0.contains("its stop command has not ended within") })
  }

  @Test("A stop command is followed by the stop signal at half of the grace, and begins once")
  func slowStopCommand() {
    world.runtime.configuration.stopCommand = ["sleep", "1000"]
    ending.terminate()
    let command = world.runtime.stopCommand
    timers.advance(by: world.runtime.configuration.policy.terminate.grace / 2)
    #expect(world.begun == ["wake", "ask \(SIGTERM) and wake"])
    ending.terminate()
    #expect(world.runtime.stopCommand === command)
    #expect(world.begun.last == "ask \(SIGTERM) and wake" && world.begun.count == 3)
  }

  @Test("An end by another signal isn't announced over the worker's socket")
  func aborted() throws {
    let worker = try connect()
    ending.terminate(by: SIGABRT)
    #expect(world.begun == ["ask \(SIGABRT) and wake"])
    #expect(try worker.hear().requests.isEmpty)
  }

  @Test("A worker whose memory can't be verified is ended by SIGKILL, because it must not run")
  func unverified() {
    world.runtime.sleep?.killUnverified()
    ending.terminate()
    #expect(world.begun == ["kill", "kill"] && ending.isKilled)
  }

  @Test("A worker's end continues when the worker couldn't be woken for it")
  func notWoken() {
    ending.terminate()
    processes.woken.first?("a thread doesn't go on")
    #expect(world.lines == ["can't be woken before its end: a thread doesn't go on"])
    ending.rootHasEnded()
    processes.succeed()
    #expect(world.gone.count == 1)
  }

  @Test("A SIGKILL that failed is sent again after pauses that double, until the process has ended")
  func killedAgain() {
    ending.kill()
    for (count, pause) in [1, 2, 4, 8, 16, 32, 60, 60].enumerated() {
      processes.kills.last?("not permitted")
      #expect(timers.pending == [.seconds(pause)] && processes.kills.count == count + 1)
      timers.advance(by: .seconds(pause))
      #expect(processes.kills.count == count + 2)
    }
    #expect(world.lines.prefix(2) == ["not permitted", "next SIGKILL in 1 s"])
    processes.kills.last?("not permitted")
    ending.rootHasEnded()
    processes.succeed()
    #expect(processes.kills.count == 9 && world.gone.count == 1 && world.isAtRest)
  }

  @Test("Another SIGKILL replaces the one that was to follow a failed one")
  func killedMeanwhile() {
    ending.kill()
    processes.kills.last?("not permitted")
    ending.kill()
    processes.kills.last?(nil)
    timers.advance(by: .seconds(60))
    #expect(processes.kills.count == 2)
  }

  @Test("No SIGKILL follows a failed one when the run is replaced")
  func notKilledAfterwards() {
    ending.kill()
    processes.kills.last?("not permitted")
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
    world.requestEnd()
    world.endRoot(leaving: WhatIsLeft(isEmpty: false, others: 1))
    #expect(world.begun == ["look"])
    timers.advance(by: WorkerEnding.savingInterval)
    #expect(world.begun == ["look", "look"], "they are looked for again")
    ending.kill()
    processes.kills.last?(nil)
    processes.looked(WhatIsLeft(isEmpty: false, others: 1))
    #expect(world.begun.last == "clear")
  }

  @Test("Processes that an unrequested end leaves behind are cleared at once, which is logged")
  func unexpected() {
    world.endRoot(leaving: WhatIsLeft(isEmpty: false, others: 2))
    processes.cleared(Clearing(strays: 1))
    #expect(
      world.lines.first?.hasPrefix(
        "its first process has ended; its 3 other processes are ended with it") == true)
  }

  @Test("A worker's end continues when its processes aren't found within 15 s")
  func lookIsLost() {
    ending.rootHasEnded()
    timers.advance(by: WorkerEnding.patience)
    #expect(world.begun == ["look", "clear"])
    processes.looked()
    #expect(world.begun == ["look", "clear"], "the outcome is too late")
    processes.cleared()
    #expect(world.begun.last == "remove group" && world.lines.isEmpty)
  }

  // MARK: clearing

  @Test(
    "Failed clearing is repeated after pauses that double, and the end continues after the last try"
  )
  func tries() {
    world.endRoot()
    for pause in [1, 2, 4, 8, 16] {
      processes.cleared(Clearing(failure: "not permitted"))
      #expect(timers.pending == [.seconds(pause)] && world.gone.isEmpty)
      timers.advance(by: .seconds(pause))
    }
    #expect(processes.clearings.count == WorkerEnding.maxTries)
    processes.cleared(Clearing(failure: "not permitted"))
    #expect(world.begun.suffix(2) == ["reap", "remove group"])
    #expect(world.lines.first == "can't kill all of its processes: not permitted")
  }

  @Test("Processes that a failed clearing has ended aren't counted")
  func failedTryCountsNothing() {
    world.endRoot(leaving: WhatIsLeft(isEmpty: false, others: 1))
    processes.cleared(Clearing(strays: 4, failure: "new ones come faster than they are ended"))
    timers.advance(by: .seconds(1))
    processes.cleared(Clearing(strays: 2))
    #expect(world.lines.last?.contains("its 3 other processes are ended with it") == true)
  }

  @Test("A worker's end continues without another try when clearing has no outcome within 15 s")
  func clearingIsLost() {
    world.endRoot()
    timers.advance(by: WorkerEnding.patience)
    #expect(world.begun.suffix(2) == ["reap", "remove group"])
    #expect(processes.clearings.count == 1)
    #expect(
      world.lines == ["can't kill all of its processes: can't look for its remaining processes"])
    processes.cleared(Clearing(failure: "late"))
    #expect(processes.clearings.count == 1 && world.lines.count == 1)
  }

  @Test("An outcome that comes twice is taken once, also during the pause before the next try")
  func repeated() {
    world.endRoot()
    let first = processes.clearings.last
    first?(Clearing(failure: "not permitted"))
    first?(Clearing())
    #expect(!world.begun.contains("reap"))
    timers.advance(by: .seconds(1))
    first?(Clearing())
    #expect(!world.begun.contains("reap"), "it isn't the outcome of the second try")
    processes.cleared()
    #expect(world.begun.contains("reap"))
  }

  // MARK: the group and the last words

  @Test("A worker's end is reported when its cgroup can't be removed, and the failure is logged")
  func groupStays() {
    world.endRoot()
    processes.cleared()
    processes.removals.last?("the group is busy")
    processes.readings.last?(nil)
    #expect(world.lines == ["the group is busy"] && world.gone.count == 1)
  }

  @Test("A worker's end is reported when removing the cgroup and reading the log have no outcome")
  func tidyingIsLost() {
    world.endRoot()
    processes.cleared()
    timers.advance(by: WorkerEnding.patience)
    #expect(world.begun.last == "read log")
    #expect(world.lines == ["can't remove its cgroup within 15 s"])
    timers.advance(by: WorkerEnding.patience)
    #expect(world.gone.count == 1 && world.world.keptLines.isEmpty)
    #expect(world.isAtRest)
  }

  // MARK: other runs

  @Test("The end of an external worker ends no processes and waits for nothing")
  func external() {
    world.runtime.external = ExternalWorker(mayBeTerminated: false)
    world.endRoot(leaving: WhatIsLeft(isEmpty: false, others: 5))
    #expect(world.world.externalEnds == [world.runtime.id] && world.begun == ["look"])
    #expect(world.gone.isEmpty && world.isAtRest)
  }

  @Test("A run that is closed during its end has no effect on the next run", arguments: 0..<5)
  func nextRun(step: Int) throws {
    let steps: [() -> Void] = [
      { ending.kill() }, { ending.rootHasEnded() }, { processes.looked() },
      { processes.cleared() }, { processes.removals.last?(nil) },
    ]
    for each in steps.dropFirst(step == 0 ? 0 : 1).prefix(max(1, step)) { each() }
    let runtime = world.runtime
    runtime.endRun(world.world.loop)
    runtime.process = try .forTest()
    world.world.ends.terminate(runtime.id)
    #expect(world.isAtRest && world.gone.isEmpty)
    #expect(runtime.ending !== ending && !runtime.hasExited && !runtime.isReaped)
  }
}
