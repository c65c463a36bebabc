import DaemonFakes
import Glibc
import Testing

@testable import Wrap

/// The wrapper is in group 100.
@Suite("Signals of a wrapper whose program has its terminal") struct TerminalSignalsTests {
  private let program = RecordingProgram()
  private let timers = FakeLoop()
  private let signals: TerminalSignals

  init() {
    signals = TerminalSignals(program, timers: timers, wrapperGroup: 100)
  }

  /// The witness answers. It has received these signals.
  private func answer(having got: [Int32] = []) {
    for signal in got { signals.receive(.signal(signal)) }
    timers.advance(by: TerminalSignals.deliveryDelay)
    signals.receive(.answer)
  }

  @Test
  func `A signal to the whole group isn't passed on, whether wrapper or witness gets it first`() {
    signals.receive(SIGINT)
    answer(having: [SIGINT])
    signals.receive(.signal(SIGTERM))
    signals.receive(SIGTERM)
    answer()
    #expect(program.drain().isEmpty)
    #expect(program.asked == 2)
  }

  @Test func `A signal to the wrapper alone is passed on, also shortly after one to the group`() {
    signals.receive(SIGTERM)
    answer(having: [SIGTERM])
    signals.receive(SIGTERM)
    answer()
    #expect(program.drain() == ["signal \(SIGTERM)"])
  }

  @Test func `A signal to the group is passed on to a program that has left the group`() {
    program.sharesGroup = false
    signals.receive(SIGTERM)
    answer(having: [SIGTERM])
    #expect(program.drain() == ["signal \(SIGTERM)"])
  }

  @Test("Without an answer within half a second, or without a witness, signals are passed on")
  func silence() {
    signals.receive(SIGHUP)
    timers.advance(by: TerminalSignals.answerLimit + TerminalSignals.deliveryDelay * 2)
    #expect(program.drain() == ["signal \(SIGHUP)"])
    signals.didLoseWitness()
    signals.receive(SIGHUP)
    timers.advance(by: TerminalSignals.deliveryDelay)
    #expect(program.drain() == ["signal \(SIGHUP)"])
    #expect(program.asked == 1)
  }

  @Test func `A wrapper that is continued after Ctrl-Z doesn't stop its program again`() {
    signals.receive(SIGTSTP)
    // It is stopped in this time. Then its timers are due, and the signals haven't been read yet.
    timers.advance(by: TerminalSignals.deliveryDelay + TerminalSignals.answerLimit)
    signals.receive(.signal(SIGTSTP))
    signals.receive(SIGCONT)
    answer(having: [SIGCONT])
    timers.advance(by: .seconds(1))
    #expect(program.drain().isEmpty)
  }

  @Test func `A report that is older than a second says nothing about a later signal`() {
    signals.receive(.signal(SIGUSR1))
    timers.advance(by: .seconds(2))
    signals.receive(SIGUSR1)
    answer()
    #expect(program.drain() == ["signal \(SIGUSR1)"])
  }

  @Test("A sleeping program is woken at once, and gets what was for the wrapper alone when it runs")
  func asleep() {
    program.isAsleep = true
    signals.receive(SIGTERM)
    #expect(program.drain() == ["wake: SIGTERM"])
    answer()
    #expect(program.drain().isEmpty)
    program.isAsleep = false
    signals.programRuns()
    #expect(program.drain() == ["signal \(SIGTERM)"])
  }

  @Test func `A new size wakes a sleeping program only if it has a handler for it`() {
    program.isAsleep = true
    signals.receive(.signal(SIGWINCH))
    #expect(program.drain().isEmpty)
    program.caught = [SIGWINCH]
    signals.receive(.signal(SIGWINCH))
    #expect(program.drain() == ["wake: SIGWINCH"])
  }

  @Test(
    "While a shell sleeps, the witness is in its foreground job's group; it returns when it runs")
  func joins() {
    program.groups = [200, 300]
    program.foregroundGroup = 300
    signals.programFallsAsleep()
    #expect(program.joined == [300])
    program.isAsleep = true
    signals.receive(.signal(SIGINT))
    #expect(program.drain() == ["wake: SIGINT"])
    program.isAsleep = false
    signals.programRuns()
    #expect(program.joined == [300, 100])
    // The program has received this signal from the kernel. That says nothing about a later one for
    // the wrapper.
    signals.receive(SIGINT)
    answer()
    #expect(program.drain() == ["signal \(SIGINT)"])
  }

  @Test func `A program that sleeps in the background is woken when its group gets the terminal`() {
    program.foregroundGroup = 999
    signals.programFallsAsleep()
    program.isAsleep = true
    timers.advance(by: .seconds(3))
    #expect(program.drain().isEmpty)
    program.foregroundGroup = 100
    timers.advance(by: TerminalSignals.foregroundPollInterval)
    #expect(program.drain().count == 1)
    signals.programRuns()
    #expect(timers.pending.isEmpty)
  }

  @Test func `A program that stops again at once in the background stops the wrapper again`() {
    program.stopSignal = SIGTSTP
    signals.receive(SIGCHLD)
    timers.advance(by: .seconds(5))
    program.isStoppingWrapper = false
    signals.receive(SIGCONT)
    program.stopSignal = SIGTTOU
    signals.receive(SIGCHLD)
    answer(having: [SIGCONT])
    timers.advance(by: .seconds(1))
    #expect(program.drain() == ["stop wrapper \(SIGTSTP)", "use", "stop wrapper \(SIGTTOU)"])
  }

  @Test func `Two equal signals to the group aren't passed on; one to the wrapper after them is`() {
    signals.receive(.signal(SIGINT))
    signals.receive(SIGINT)
    signals.receive(.signal(SIGINT))
    signals.receive(SIGINT)
    answer()
    #expect(program.drain().isEmpty)
    // The witness has read two signals, and the wrapper one.
    signals.receive(SIGINT)
    answer(having: [SIGINT, SIGINT])
    signals.receive(SIGINT)
    answer()
    #expect(program.drain() == ["signal \(SIGINT)"])
  }

  @Test func `A signal to the group from before the program's start is passed on`() {
    program.hasProcess = false
    signals.receive(SIGINT)
    program.hasProcess = true
    answer(having: [SIGINT])
    #expect(program.drain() == ["signal \(SIGINT)"])
  }

  @Test(
    "A sleeping program isn't woken by a signal that it ignores, and doesn't get that signal later")
  func ignored() {
    program.isAsleep = true
    program.ignored = [SIGINT]
    signals.receive(SIGINT)
    answer()
    program.isAsleep = false
    signals.programRuns()
    #expect(program.drain().isEmpty)
  }

  @Test(
    "A shell that stopped itself gets the terminal back, which the outer shell gives to the wrapper"
  )
  func suspend() {
    program.sharesGroup = false
    program.groups = [200]
    program.foregroundGroup = 200
    program.stopSignal = SIGSTOP
    signals.receive(SIGCHLD)
    program.foregroundGroup = 100
    program.isStoppingWrapper = false
    signals.receive(SIGCONT)
    #expect(program.given == [200])
    answer(having: [SIGCONT])
    #expect(program.drain() == ["stop wrapper \(SIGTSTP)", "use", "signal \(SIGCONT)"])
  }

  @Test func `A Ctrl-Z that the end of a sleep loses is sent again, to the group that had it`() {
    program.isAsleep = true
    program.losesStops = true
    program.groups = [200]
    program.foregroundGroup = 200
    signals.programFallsAsleep()
    signals.receive(.signal(SIGTSTP))
    program.isAsleep = false
    signals.programRuns()
    #expect(program.drain() == ["wake: SIGTSTP", "signal \(SIGTSTP) to 200"])
  }

  @Test("A lost Ctrl-Z is sent again once, whichever of wrapper and witness hears of it first")
  func lostInOwnGroup() {
    for wrapperIsFirst in [true, false] {
      program.isAsleep = true
      program.losesStops = true
      if wrapperIsFirst { signals.receive(SIGTSTP) } else { signals.receive(.signal(SIGTSTP)) }
      program.losesStops = false
      if wrapperIsFirst { signals.receive(.signal(SIGTSTP)) } else { signals.receive(SIGTSTP) }
      answer()
      program.isAsleep = false
      signals.programRuns()
      let sent = program.drain().filter { $0.hasPrefix("signal") }
      #expect(sent == ["signal \(SIGTSTP) to 100"], "\(wrapperIsFirst)")
    }
  }

  @Test func `A Ctrl-Z from before the stop isn't passed on after it`() {
    signals.receive(SIGTSTP)
    timers.advance(by: .seconds(100))
    program.stopSignal = nil
    _ = program.drain()
    signals.receive(SIGTSTP)
    signals.receive(SIGCONT)
    answer(having: [SIGCONT])
    timers.advance(by: .seconds(100))
    #expect(program.drain().isEmpty)
  }
}
