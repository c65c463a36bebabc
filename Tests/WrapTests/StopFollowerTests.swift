import DaemonFakes
import Glibc
import Testing

@testable import Wrap

/// The wrapper is in group 100.
@Suite("A wrapper that stops together with its program") struct StopFollowerTests {
  private let program = RecordingProgram()
  private let timers = FakeLoop()
  private let stops: StopFollower

  init() {
    stops = StopFollower(program, timers: timers, wrapperGroup: 100)
  }

  @Test func `It stops once, until the shell continues it`() {
    program.stopSignal = SIGTTIN
    stops.follow()
    stops.follow()
    timers.advance(by: .seconds(5))
    #expect(program.drain() == ["stop wrapper \(SIGTTIN)"])
    program.isStoppingWrapper = false
    program.stopSignal = nil
    stops.didContinue()
    timers.advance(by: .seconds(1))
    #expect(program.drain() == ["use"])
    program.stopSignal = SIGSTOP
    stops.follow()
    #expect(program.drain() == ["stop wrapper \(SIGTSTP)"])
  }

  @Test(
    "It detects the end of its stop without reading SIGCONT, and stops again for a second Ctrl-Z")
  func lostContinue() {
    program.stopSignal = SIGTSTP
    stops.follow()
    timers.advance(by: .seconds(5))
    _ = program.drain()
    // After `fg` and Ctrl-Z, only the second stop of the program is noticed.
    program.isStoppingWrapper = false
    stops.follow()
    timers.advance(by: StopFollower.pollInterval)
    #expect(program.drain() == ["use"])
    timers.advance(by: StopFollower.pollInterval)
    #expect(program.drain() == ["stop wrapper \(SIGTSTP)"])
  }

  @Test func `It ignores the stop of a trim, and follows a stop that lasts longer`() {
    program.isBeingTrimmed = true
    program.stopSignal = SIGTSTP
    stops.follow()
    timers.advance(by: .seconds(1))
    #expect(program.drain().isEmpty)
    program.isBeingTrimmed = false
    timers.advance(by: StopFollower.pollInterval)
    #expect(program.drain() == ["stop wrapper \(SIGTSTP)"])
  }

  @Test("It isn't stopped again by a program that the same SIGCONT continues a moment later")
  func continuedLater() {
    program.stopSignal = SIGTSTP
    stops.follow()
    program.isStoppingWrapper = false
    stops.didContinue()
    stops.follow()
    program.stopSignal = nil
    timers.advance(by: .seconds(1))
    #expect(program.drain() == ["stop wrapper \(SIGTSTP)", "use"])
  }

  @Test("Where no shell follows a stop, it tries three times, and again after the program ran")
  func noShell() {
    program.hasDroppedStop = true
    program.stopSignal = SIGTSTP
    for _ in 0..<10 {
      stops.follow()
      program.isStoppingWrapper = false
      timers.advance(by: StopFollower.pollInterval)
    }
    #expect(program.drain().filter { $0.hasPrefix("stop") }.count == 3)
    program.stopSignal = nil
    stops.follow()
    timers.advance(by: .seconds(1))
    _ = program.drain()
    program.stopSignal = SIGTSTP
    stops.follow()
    #expect(program.drain() == ["stop wrapper \(SIGTSTP)"])
  }

  @Test func `It doesn't follow a SIGSTOP to a program that isn't a shell's own job`() {
    program.isJobOfShell = false
    program.stopSignal = SIGSTOP
    stops.follow()
    #expect(program.drain().isEmpty)
  }

  @Test("It doesn't follow a stop that a SIGCONT is about to end, nor a stop of a sleeping program")
  func notNow() {
    program.stopSignal = SIGTSTP
    stops.isAboutToContinue = { true }
    stops.follow()
    stops.isAboutToContinue = { false }
    program.isAsleep = true
    stops.follow()
    #expect(program.drain().isEmpty)
  }
}
