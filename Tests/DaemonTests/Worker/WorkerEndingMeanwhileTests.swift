import Lifecycle
import Testing

@testable import Daemon

@Suite("A worker's end, while other threads work on the worker") struct WorkerEndingMeanwhileTests {
  private let world: WorkerEndWorld
  private var ending: WorkerEnding { world.ending }
  private var processes: FakeWorkerProcesses { world.processes }
  private var timers: FakeTimers { world.timers }

  init() throws { world = try WorkerEndWorld() }

  // MARK: SIGKILL

  @Test func `No process is reaped while a SIGKILL is being sent`() {
    ending.kill()
    ending.rootDidEnd()
    #expect(world.begun == ["kill"])
    processes.kills.last?(nil)
    processes.succeed()
    #expect(world.begun == ["kill", "scan", "clear", "reap", "remove group", "read log"])
  }

  @Test func `A worker's end continues when a SIGKILL has no outcome within 15 s`() {
    ending.kill()
    ending.rootDidEnd()
    timers.advance(by: WorkerEnding.timeout)
    processes.succeed()
    #expect(world.gone.count == 1)
    #expect(world.lines == ["no effect of SIGKILL within 15 s"])
    #expect(world.isStable)
  }

  @Test("A worker's end waits for the last of several SIGKILLs, and takes each outcome once")
  func twoKills() {
    ending.kill()
    ending.kill()
    ending.rootDidEnd()
    processes.kills.first?(nil)
    processes.kills.first?(nil)
    #expect(!world.begun.contains("scan"), "one is still under way")
    processes.kills.last?("not permitted")
    #expect(world.begun.last == "scan" && world.lines == ["not permitted"])
  }

  @Test("A worker's end waits for a SIGKILL that begins during the look for remaining processes")
  func killWhileLooking() {
    ending.rootDidEnd()
    ending.kill()
    processes.scanned()
    #expect(world.begun == ["scan", "kill"])
    processes.kills.last?(nil)
    #expect(world.begun.last == "scan")
  }

  @Test("A SIGKILL while remaining processes are being cleared doesn't disturb the worker's end")
  func killWhileClearing() {
    world.endRoot()
    ending.kill()
    processes.kills.last?(nil)
    #expect(world.begun == ["scan", "clear", "kill"])
    processes.cleared()
    processes.removals.last?(nil)
    processes.readings.last?(nil)
    #expect(world.gone.count == 1 && world.isStable)
  }

  @Test("After the root process was reaped a SIGKILL is sent to the cgroup only, not by number")
  func killWhenReaped() throws {
    for hasGroup in [true, false] {
      let world = try WorkerEndWorld(hasGroup: hasGroup)
      world.endRoot()
      world.processes.cleared()
      world.ending.kill()
      #expect(world.processes.kills.count == (hasGroup ? 1 : 0))
    }
  }

  // MARK: sleep

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

  @Test("A worker's end waits for an operation that begins during the look for remaining processes")
  func operationWhileLooking() {
    ending.rootDidEnd()
    world.recoverMemory()
    processes.scanned()
    #expect(world.begun == ["scan"])
    world.memory.loseOutcome()
    timers.advance(by: WorkerEnding.interval)
    #expect(world.begun == ["scan", "scan"])
  }
}
