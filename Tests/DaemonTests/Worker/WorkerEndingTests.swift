import DaemonFakes
import Glibc
import Linux
import Testing

@testable import Daemon

@Suite("A worker's end") struct WorkerEndingTests {
  private let world: WorkerEndWorld
  private var ending: WorkerEnding { world.ending }
  private var processes: FakeWorkerProcesses { world.processes }
  private var timers: FakeLoop { world.timers }

  init() throws { world = try WorkerEndWorld() }

  @Test func `A worker's end has its steps in order and is reported once, with its status`() {
    processes.exit = .exited(3)
    ending.rootDidEnd()
    #expect(ending.hasExited && !ending.isReaped)
    processes.succeed(lastLines: ["listening", "no such port"])
    #expect(world.begun == ["scan", "clear", "reap", "remove group", "read log"])
    #expect(world.gone == [.exited(3)])
    #expect(world.world.keptLines[world.worker.id] == ["listening", "no such port"])
    #expect(ending.isReaped && world.isStable)
  }

  // MARK: SIGKILL

  @Test func `A SIGKILL that failed is sent again after pauses that double`() {
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

  @Test func `Processes that may still save their work are waited for, until a SIGKILL`() {
    world.world.driver.request(.stop, world.worker.id) { _ in }
    world.endRoot(leaving: RemainingProcesses(isEmpty: false, others: 1))
    #expect(world.begun == ["scan"])
    timers.advance(by: WorkerEnding.savingInterval)
    #expect(world.begun == ["scan", "scan"], "they are looked for again")
    ending.kill()
    processes.kills.last?(nil)
    processes.scanned(RemainingProcesses(isEmpty: false, others: 1))
    #expect(world.begun.last == "clear")
  }

  @Test func `Processes that an unrequested end leaves behind are cleared at once`() {
    world.endRoot(leaving: RemainingProcesses(isEmpty: false, others: 2))
    processes.cleared(Clearing(escaped: 1))
    #expect(
      world.lines.first?.hasPrefix(
        "its first process has ended; its 3 other processes are ended with it") == true)
  }

  // MARK: clearing

  @Test func `Failed clearing is repeated after pauses that double, a few times`() {
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

  @Test func `An outcome that comes twice counts once, also in the pause before the next try`() {
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

  @Test func `A worker's end is reported when its cgroup can't be removed`() {
    world.endRoot()
    processes.cleared()
    processes.removals.last?("the group is busy")
    processes.readings.last?(nil)
    #expect(world.lines == ["the group is busy"] && world.gone.count == 1)
  }

  // MARK: lost outcomes

  @Test func `A worker's end continues when a step has no outcome within 15 s`() {
    ending.kill()
    ending.rootDidEnd()
    timers.advance(by: WorkerEnding.timeout)
    #expect(world.begun == ["kill", "scan"])
    timers.advance(by: WorkerEnding.timeout)
    #expect(world.begun == ["kill", "scan", "clear"])
    processes.scanned()
    #expect(world.begun.last == "clear", "the outcome is too late")
    timers.advance(by: WorkerEnding.timeout)
    #expect(world.begun.suffix(2) == ["reap", "remove group"])
    processes.cleared(Clearing(failure: "late"))
    #expect(processes.clearings.count == 1)
    timers.advance(by: WorkerEnding.timeout)
    #expect(world.begun.last == "read log" && world.gone.isEmpty)
    timers.advance(by: WorkerEnding.timeout)
    #expect(world.gone.count == 1 && world.world.keptLines.isEmpty)
    #expect(
      world.lines == [
        "no effect of SIGKILL within 15 s",
        "can't kill all of its processes: can't look for its remaining processes",
        "can't remove its cgroup within 15 s",
      ])
    #expect(world.isStable)
  }

  // MARK: other runs

  @Test func `The end of an external worker ends no processes and waits for nothing`() {
    world.worker.external = ExternalWorker(mayBeTerminated: false)
    world.endRoot(leaving: RemainingProcesses(isEmpty: false, others: 5))
    #expect(world.world.externalEnds == [world.worker.id] && world.begun == ["scan"])
    #expect(world.gone.isEmpty && world.isStable)
  }

  /// An adopted worker that sleeps, with another process.
  private func sleepingStranger(with other: SpawnedProcess) throws -> WorkerEndWorld {
    let world = try WorkerEndWorld(hasGroup: false, state: .suspended)
    world.worker.external = ExternalWorker()
    world.worker.sleepers = [other.identity]
    return world
  }

  @Test func `What an adopted process leaves asleep is woken before the worker is removed`() throws
  {
    let other = try SpawnedProcess.forTest()
    defer { other.endForTest() }
    let world = try sleepingStranger(with: other)
    world.ending.rootDidEnd()
    #expect(world.world.driver.state.state(of: world.worker.id) == .resuming)
    world.timers.advance(by: WorkerSleeps.managerInterval)
    #expect(!world.ending.hasExited && world.begun.isEmpty)
    world.world.driver.send(.resumed(world.worker.id, .zero))
    world.timers.advance(by: WorkerSleeps.managerInterval)
    world.processes.scanned(RemainingProcesses(isEmpty: false, others: 1))
    #expect(world.world.externalEnds == [world.worker.id] && world.gone.isEmpty)
  }

  @Test func `An adopted worker is removed although what it left asleep can't be woken`() throws {
    let other = try SpawnedProcess.forTest()
    defer { other.endForTest() }
    let world = try sleepingStranger(with: other)
    world.ending.rootDidEnd()
    for _ in 0..<WorkerEnding.maxSleeperChecks {
      #expect(world.begun.isEmpty)
      world.timers.advance(by: WorkerSleeps.managerInterval)
    }
    #expect(world.begun == ["scan"])
    #expect(world.lines.last == "its other processes still sleep, and can't be woken")
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

  // MARK: while a SIGKILL is being sent

  @Test func `A worker's end waits for the last of several SIGKILLs, once for each`() {
    ending.kill()
    ending.kill()
    ending.rootDidEnd()
    processes.kills.first?(nil)
    processes.kills.first?(nil)
    #expect(!world.begun.contains("scan"), "one is still under way")
    processes.kills.last?("not permitted")
    #expect(world.begun.last == "scan" && world.lines == ["not permitted"])
  }

  @Test func `A worker's end waits for a SIGKILL that begins during the search`() {
    ending.rootDidEnd()
    ending.kill()
    processes.scanned()
    #expect(world.begun == ["scan", "kill"])
    processes.kills.last?(nil)
    #expect(world.begun.last == "scan")
  }

  @Test func `A SIGKILL during the clearing doesn't disturb the worker's end`() {
    world.endRoot()
    ending.kill()
    processes.kills.last?(nil)
    #expect(world.begun == ["scan", "clear", "kill"])
    processes.cleared()
    processes.removals.last?(nil)
    processes.readings.last?(nil)
    #expect(world.gone.count == 1 && world.isStable)
  }

  @Test func `After the root process was reaped a SIGKILL is for the cgroup only`() throws {
    for hasGroup in [true, false] {
      let world = try WorkerEndWorld(hasGroup: hasGroup)
      world.endRoot()
      world.processes.cleared()
      world.ending.kill()
      #expect(world.processes.kills.count == (hasGroup ? 1 : 0))
    }
  }

  // MARK: while its memory is moved

  @Test func `A worker's end waits for the memory operation that is under way`() {
    world.actOnMemory()
    ending.rootDidEnd()
    #expect(ending.hasExited && world.begun.isEmpty)
    world.memory.evict(to: "/image")
    #expect(world.begun == ["scan"])
  }

  @Test func `A worker's end notices by itself the end of an operation whose outcome was lost`() {
    world.actOnMemory()
    ending.rootDidEnd()
    timers.advance(by: .seconds(30))
    #expect(world.begun.isEmpty)
    world.memory.loseOutcome()
    timers.advance(by: WorkerEnding.interval)
    processes.succeed()
    #expect(world.gone.count == 1)
  }

  @Test func `A worker's end waits for an operation that begins during the search`() {
    ending.rootDidEnd()
    // A recovery may begin even if the root process has ended.
    world.worker.sleep?.perform({ $0.recover(expecting: .unknown(), then: $1) }, then: { _ in })
    processes.scanned()
    #expect(world.begun == ["scan"])
    world.memory.loseOutcome()
    timers.advance(by: WorkerEnding.interval)
    #expect(world.begun == ["scan", "scan"])
  }
}
