import Glibc
import Lifecycle
import Testing

@testable import Wrap

@Suite("Signals that a wrapper passes to its program") struct PassedSignalsTests {
  private let target = RecordingProgram()
  private let signals: PassedSignals

  init() { signals = PassedSignals(target) }

  @Test(arguments: [SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM, SIGWINCH])
  func `A running program gets the wrapper's signals at once`(signal: Int32) {
    signals.receive(signal)
    #expect(target.drain() == ["signal \(signal)"])
    signals.deliverWaiting()
    #expect(target.drain().isEmpty)
  }

  @Test func `A running program isn't asleep while it is trimmed, and so gets its signals`() {
    let running: Set<WorkerState> = [.foreground, .background]
    let asleep: Set<WorkerState> = [
      .suspending, .suspended, .hibernating, .hibernated, .resuming,
    ]
    for state in WorkerState.allCases {
      #expect(WrappedProcess.isAsleep(state, isBusy: true) != running.contains(state))
      #expect(WrappedProcess.isAsleep(state, isBusy: false) == asleep.contains(state))
    }
  }

  @Test("A sleeping program is woken for each signal, and gets the signals in order when it runs")
  func sleeping() {
    target.isAsleep = true
    signals.receive(SIGTERM)
    signals.receive(SIGUSR1)
    #expect(
      target.drain() == ["wake: SIGTERM", "wake: SIGUSR1"])
    target.isAsleep = false
    signals.deliverWaiting()
    #expect(target.drain() == ["signal \(SIGTERM)", "signal \(SIGUSR1)"])
    signals.deliverWaiting()
    #expect(target.drain().isEmpty)
  }

  @Test(
    "A sleeping program gets no signal that it ignored when the signal was sent, and isn't woken")
  func ignoredAsleep() {
    target.isAsleep = true
    target.ignored = [SIGINT]
    signals.receive(SIGINT)
    #expect(target.drain().isEmpty)
    target.isAsleep = false
    target.ignored = []
    signals.deliverWaiting()
    #expect(target.drain().isEmpty)
  }

  @Test func `A sleeping program that ignores a terminal's new size isn't woken for it`() {
    target.isAsleep = true
    signals.receive(SIGWINCH, isFromTerminal: true)
    #expect(target.drain().isEmpty)
    target.caught = [SIGWINCH]
    signals.receive(SIGWINCH, isFromTerminal: true)
    #expect(target.drain() == ["wake: SIGWINCH"])
  }

  @Test(
    "A terminal's signal is sent to the program's whole group, or to the program if it has none")
  func fromTerminal() {
    signals.receive(SIGINT, isFromTerminal: true)
    #expect(target.drain() == ["group \(SIGINT)"])
    target.hasGroup = false
    signals.receive(SIGINT, isFromTerminal: true)
    #expect(target.drain() == ["signal \(SIGINT)"])
  }

  @Test func `A Jupyter server's signals are sent to its kernel's whole group, awake or asleep`() {
    let signals = PassedSignals(target, reachGroup: true)
    signals.receive(SIGINT)
    #expect(target.drain() == ["group \(SIGINT)"])
    target.isAsleep = true
    signals.receive(SIGINT)
    #expect(target.drain() == ["wake: SIGINT"])
    target.isAsleep = false
    signals.deliverWaiting()
    #expect(target.drain() == ["group \(SIGINT)"])
    target.hasGroup = false
    signals.receive(SIGTERM)
    #expect(target.drain() == ["signal \(SIGTERM)"])
  }

  @Test func `A program gets signals from before its start when it runs, and none after its end`() {
    target.hasProcess = false
    for signal in [SIGTERM, SIGCONT] { signals.receive(signal) }
    signals.deliverWaiting()
    #expect(target.drain().isEmpty)
    target.hasProcess = true
    signals.deliverWaiting()
    #expect(target.drain() == ["signal \(SIGTERM)"])
    target.hasProcess = false
    signals.receive(SIGTERM)
    signals.deliverWaiting()
    #expect(target.drain().isEmpty)
  }

  @Test("Signals for a program that has ended in its sleep are never delivered to another process")
  func endedAsleep() {
    target.isAsleep = true
    signals.receive(SIGTERM)
    _ = target.drain()
    target.hasProcess = false
    signals.deliverWaiting()
    #expect(target.drain().isEmpty)
  }

  @Test("Ctrl-Z stops all of the program and then the wrapper, and SIGCONT continues all of it")
  func held() {
    signals.receive(SIGTSTP, isFromTerminal: true)
    #expect(target.drain() == ["stop all", "stop wrapper"])
    signals.receive(SIGCONT)
    #expect(target.drain() == ["continue all"])
    // The program isn't stopped by the terminal any more.
    signals.receive(SIGCONT)
    #expect(target.drain() == ["signal \(SIGCONT)"])
  }

  @Test func `Ctrl-Z stops the wrapper and leaves a sleeping program asleep`() {
    target.isAsleep = true
    signals.receive(SIGTSTP)
    #expect(target.drain() == ["stop wrapper"])
    signals.receive(SIGCONT)
    #expect(target.drain().isEmpty)
  }

  @Test func `A wrapper whose program can't be found, or isn't running, stops alone`() {
    target.canBeFound = false
    signals.receive(SIGTSTP)
    #expect(target.drain() == ["stop wrapper"])
    target.hasProcess = false
    signals.receive(SIGTSTP)
    #expect(target.drain() == ["stop wrapper"])
  }

  @Test func `SIGCHLD makes the wrapper reap its child and isn't passed to the program`() {
    signals.receive(SIGCHLD)
    #expect(target.reaped == 1 && target.drain() == [])
  }
}
