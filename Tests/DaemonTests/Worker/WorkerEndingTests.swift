import Glibc
import Lifecycle
import Testing

@testable import Daemon

@Suite("A worker's end") struct WorkerEndingTests {
  private let world: WorkerEndWorld
  private var ending: WorkerEnding { world.ending }
  private var processes: FakeWorkerProcesses { world.processes }
  private var timers: FakeTimers { world.timers }

  init() throws { world = try WorkerEndWorld() }

  private static let inOrder = ["scan", "clear", "reap", "remove group", "read log"]

  @Test("A worker's end takes its steps in order and is reported once, with status and last words")
  func whole() {
    processes.exit = .exited(3)
    ending.rootDidEnd()
    #expect(ending.hasExited && !ending.isReaped)
    processes.succeed(lastLines: ["listening", "no such port"])
    #expect(world.begun == Self.inOrder)
    #expect(world.gone == [.exited(3)])
    #expect(world.world.keptLines[world.worker.id] == ["listening", "no such port"])
    #expect(ending.isReaped && world.isStable)
  }

  // MARK: SIGKILL

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
    ending.rootDidEnd()
    processes.succeed()
    #expect(processes.kills.count == 9 && world.gone.count == 1 && world.isStable)
  }

  @Test func `Another SIGKILL replaces the one that was to follow a failed one`() {
    ending.kill()
    processes.kills.last?("not permitted")
    ending.kill()
    processes.kills.last?(nil)
    timers.advance(by: .seconds(60))
    #expect(processes.kills.count == 2)
  }

  @Test func `No SIGKILL follows a failed one when the run is replaced`() {
    ending.kill()
    processes.kills.last?("not permitted")
    ending.end()
    #expect(timers.pending.isEmpty)
  }

  // MARK: remaining processes

  @Test("Processes that may still save their work are waited for, until a SIGKILL or their own end")
  func saving() {
    world.requestEnd()
    world.endRoot(leaving: RemainingProcesses(isEmpty: false, others: 1))
    #expect(world.begun == ["scan"])
    timers.advance(by: WorkerEnding.savingInterval)
    #expect(world.begun == ["scan", "scan"], "they are looked for again")
    ending.kill()
    processes.kills.last?(nil)
    processes.scanned(RemainingProcesses(isEmpty: false, others: 1))
    #expect(world.begun.last == "clear")
  }

  @Test("Processes that an unrequested end leaves behind are cleared at once, which is logged")
  func unexpected() {
    world.endRoot(leaving: RemainingProcesses(isEmpty: false, others: 2))
    processes.cleared(Clearing(escaped: 1))
    #expect(
      world.lines.first?.hasPrefix(
        "its first process has ended; its 3 other processes are ended with it") == true)
  }

  @Test func `A worker's end continues when its processes aren't found within 15 s`() {
    ending.rootDidEnd()
    timers.advance(by: WorkerEnding.timeout)
    #expect(world.begun == ["scan", "clear"])
    processes.scanned()
    #expect(world.begun == ["scan", "clear"], "the outcome is too late")
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

  @Test("Processes that a failed clearing has killed are counted once", arguments: [0, 2])
  func failedTryCounts(later: Int) {
    world.endRoot(leaving: RemainingProcesses(isEmpty: false, others: 1))
    processes.cleared(Clearing(escaped: 4, failure: "new ones come faster than they are ended"))
    timers.advance(by: .seconds(1))
    processes.cleared(Clearing(escaped: later))
    #expect(world.lines.last?.contains("its 5 other processes are ended with it") == true)
  }

  @Test("A worker's end continues without another try when clearing has no outcome within 15 s")
  func clearingIsLost() {
    world.endRoot()
    timers.advance(by: WorkerEnding.timeout)
    #expect(world.begun.suffix(2) == ["reap", "remove group"])
    #expect(processes.clearings.count == 1)
    #expect(
      world.lines == ["can't kill all of its processes: can't look for its remaining processes"])
    processes.cleared(Clearing(failure: "late"))
    #expect(processes.clearings.count == 1 && world.lines.count == 1)
  }

  @Test("An outcome that comes twice counts once, also during the pause before the next try")
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

  // MARK: cgroup and last log lines

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
    timers.advance(by: WorkerEnding.timeout)
    #expect(world.begun.last == "read log")
    #expect(world.lines == ["can't remove its cgroup within 15 s"])
    timers.advance(by: WorkerEnding.timeout)
    #expect(world.gone.count == 1 && world.world.keptLines.isEmpty)
    #expect(world.isStable)
  }

  // MARK: other runs

  @Test func `The end of an external worker ends no processes and waits for nothing`() {
    world.worker.external = ExternalWorker(mayBeTerminated: false)
    world.endRoot(leaving: RemainingProcesses(isEmpty: false, others: 5))
    #expect(world.world.externalEnds == [world.worker.id] && world.begun == ["scan"])
    #expect(world.gone.isEmpty && world.isStable)
  }

  @Test("A run that is closed during its end has no effect on the next run", arguments: 0..<5)
  func nextRun(step: Int) throws {
    let steps: [() -> Void] = [
      { ending.kill() }, { ending.rootDidEnd() }, { processes.scanned() },
      { processes.cleared() }, { processes.removals.last?(nil) },
    ]
    for each in steps.dropFirst(step == 0 ? 0 : 1).prefix(max(1, step)) { each() }
    let worker = world.worker
    worker.endRun(world.world.loop)
    worker.process = try .forTest()
    world.world.ends.terminate(worker.id)
    #expect(world.isStable && world.gone.isEmpty)
    #expect(worker.ending !== ending && !worker.hasExited && !worker.isReaped)
  }
}
