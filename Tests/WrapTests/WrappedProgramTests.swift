import Daemon
import DaemonFakes
import Linux
import Policy
import Testing

@testable import Lifecycle
@testable import Wrap

@Suite("The program that a wrapper stands for") struct WrappedProgramTests {
  private let program: WrappedProgram
  private let closed = Closed()

  private final class Closed { var descriptors: [[Int32]] = [] }

  init() {
    program = WrappedProgram(
      WorkerID("clangd-7"), Inheritance(firstArgument: 3, descriptors: [5, 9]), logPath: nil,
      closeInherited: { [closed] in closed.descriptors.append($0) })
  }

  @discardableResult
  private func change(
    _ from: WorkerState, _ to: WorkerState, _ cause: Cause = .requested(.start),
    _ worker: String = "clangd-7", isRunning: Bool = false
  ) -> [WrappedProgram.Step] {
    program.steps(
      after: Transition(worker: WorkerID(worker), from: from, to: to, cause: cause, at: .zero),
      isRunning: isRunning)
  }

  @Test("The wrapper closes the inherited descriptors when the program has them, and not before")
  func inherits() {
    change(.terminated, .launching)
    #expect(closed.descriptors.isEmpty)
    program.didLaunch()
    #expect(closed.descriptors == [[5, 9]])
  }

  @Test func `A wrapper reports each lasting state, and no transitional one`() {
    #expect(change(.foreground, .background) == [.report])
    #expect(change(.background, .suspending) == [.fallsAsleep])
    #expect(change(.suspending, .suspended) == [.sleeps, .report])
    for state in [WorkerState.hibernating, .resuming] {
      #expect(change(.suspended, state) == [])
    }
  }

  @Test("A wake is counted, activity is measured from then on, and waiting signals are delivered")
  func wakes() {
    for count in 1...2 {
      #expect(change(.resuming, .foreground, isRunning: true) == [.sampleNow, .runs, .report])
      #expect(program.wakes == count)
    }
  }

  @Test func `A failed resume doesn't count as a wake`() {
    #expect(change(.resuming, .hibernated) == [.sleeps, .report])
    #expect(program.wakes == 0)
  }

  @Test(
    "The wrapper ends with its program's exit status",
    arguments: [
      (Lifecycle.ExitStatus.exited(0), WrapEnd.exited(0)), (.exited(4), .exited(4)),
      (.signaled(15), .signaled(15)), (.outOfMemory, .signaled(9)),
    ])
  func ends(status: Lifecycle.ExitStatus, end: WrapEnd) {
    program.didEnd(status)
    #expect(program.end == end)
    #expect(change(.foreground, .terminated, .exited(status)) == [.report, .end])
    #expect(program.end == end)
  }

  @Test func `A program that didn't start ends the wrapper with the reason`() {
    #expect(change(.launching, .terminated, .failed("no such file")).last == .end)
    #expect(program.end == .notStarted("no such file"))
  }

  @Test func `A program whose end wasn't seen has an unknown exit status`() {
    program.didEnd(.unknown)
    #expect(program.end == .notStarted("exit status unknown"))
  }

  @Test func `A wrapper ignores the states of other workers`() {
    #expect(change(.launching, .terminated, .failed("no such file"), "web") == [])
    #expect(program.end == nil)
  }
}

@Suite("The time between two looks at what runs") struct PaceOfWrapperTests {
  @Test(
    "A wrapper looks eight times within --idle-after, every 2 s at least and every 100 ms at most",
    arguments: [
      (Duration.seconds(8), Duration.seconds(1)), (.seconds(300), .seconds(2)),
      (.milliseconds(500), .milliseconds(100)), (.seconds(16), .seconds(2)),
    ])
  func running(idleAfter: Duration, interval: Duration) {
    let pace = DaemonRole.paceOfWrapper(idleAfter: idleAfter)
    #expect(pace.running == interval && pace.resting == .seconds(5))
  }
}

@Suite("A wrapper's own code in memory") struct IdleCodeReleaseTests {
  @Test func `A wrapper's idle code is released once, when nothing has changed for a moment`() {
    let timers = FakeLoop()
    var count = 0
    let code = IdleCodeRelease(timers) { count += 1 }
    timers.advance(by: .seconds(60))
    #expect(count == 0)
    code.postpone()
    timers.advance(by: IdleCodeRelease.delay - .milliseconds(1))
    code.postpone()
    timers.advance(by: IdleCodeRelease.delay - .milliseconds(1))
    #expect(count == 0)
    timers.advance(by: .milliseconds(1))
    #expect(count == 1)
    timers.advance(by: .seconds(60))
    #expect(count == 1)
    code.postpone()
    timers.advance(by: .seconds(60))
    #expect(count == 2)
  }
}
