import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("A worker's end, while other threads work on the worker") struct WorkerEndingMeanwhileTests {
  private let world = EndWorld()
  private var ending: WorkerEnding { world.ending }
  private var timers: FakeTimers { world.timers }

  // MARK: SIGKILL

  @Test("No process is reaped while a SIGKILL is being sent")
  func killing() {
    ending.kill()
    ending.rootHasEnded()
    #expect(world.begun == ["kill"])
    world.kills.last?(nil)
    world.succeed()
    #expect(world.begun == ["kill", "look", "clear", "reap", "remove group", "read log"])
  }

  @Test("A worker's end continues when a SIGKILL has no outcome within 15 s")
  func killIsLost() {
    ending.kill()
    ending.rootHasEnded()
    timers.advance(by: WorkerEnding.patience)
    world.succeed()
    #expect(world.gone.count == 1)
    #expect(world.lines == ["no effect of SIGKILL within 15 s"])
    #expect(world.isAtRest)
  }

  @Test("A worker's end waits for the last of several SIGKILLs, and takes each outcome once")
  func twoKills() {
    ending.kill()
    ending.kill()
    ending.rootHasEnded()
    world.kills.first?(nil)
    world.kills.first?(nil)
    #expect(!world.begun.contains("look"), "one is still under way")
    world.kills.last?("not permitted")
    #expect(world.begun.last == "look" && world.lines == ["not permitted"])
  }

  @Test("A worker's end waits for a SIGKILL that begins during the look for remaining processes")
  func killWhileLooking() {
    ending.rootHasEnded()
    ending.kill()
    world.looked()
    #expect(world.begun == ["look", "kill"])
    world.kills.last?(nil)
    #expect(world.begun.last == "look")
  }

  @Test("A SIGKILL while remaining processes are being cleared doesn't disturb the worker's end")
  func killWhileClearing() {
    world.endRoot()
    ending.kill()
    world.kills.last?(nil)
    #expect(world.begun == ["look", "clear", "kill"])
    world.cleared()
    world.removals.last?(nil)
    world.readings.last?(nil)
    #expect(world.gone.count == 1 && world.isAtRest)
  }

  @Test("After the root process was reaped a SIGKILL is sent to the cgroup only, not by number")
  func killWhenReaped() {
    world.endRoot()
    world.cleared()
    ending.kill()
    #expect(world.kills.count == 1)
    world.hasGroup = false
    ending.kill()
    #expect(world.kills.count == 1)
  }

  // MARK: sleep

  @Test("A worker's end waits for the memory operation that is under way")
  func duringSleepOperation() {
    world.isActedOn = true
    ending.rootHasEnded()
    #expect(ending.hasExited && world.begun.isEmpty)
    world.isActedOn = false
    // The operation's outcome.
    ending.rootHasEnded()
    #expect(world.begun == ["look"])
  }

  @Test("A worker's end notices by itself the end of an operation whose outcome was lost")
  func sleepOutcomeIsLost() {
    world.isActedOn = true
    ending.rootHasEnded()
    timers.advance(by: .seconds(30))
    #expect(world.begun.isEmpty)
    world.isActedOn = false
    timers.advance(by: WorkerEnding.interval)
    world.succeed()
    #expect(world.gone.count == 1)
  }

  @Test("A worker's end waits for an operation that begins during the look for remaining processes")
  func operationWhileLooking() {
    ending.rootHasEnded()
    world.isActedOn = true
    world.looked()
    #expect(world.begun == ["look"])
    world.isActedOn = false
    timers.advance(by: WorkerEnding.interval)
    #expect(world.begun == ["look", "look"])
  }
}
