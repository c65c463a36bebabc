import CLinux
import Daemon
import Glibc
import Linux

/// Receives the wrapper's signals, and handles them for a program with or without a terminal.
final class WrapperSignals {
  private enum Mode {
    case passing(PassedSignals)
    case terminal(TerminalSignals, WrapperTerminal)
  }

  private let mode: Mode

  init(
    _ process: WrappedProcess, _ terminal: WrapperTerminal?, reachGroup: Bool, timers: any Timers
  ) {
    guard let terminal else {
      mode = .passing(PassedSignals(process, reachGroup: reachGroup))
      return
    }
    mode = .terminal(TerminalSignals(process, timers: timers), terminal)
  }

  /// Receives the wrapper's signals from now on. They don't end or stop the wrapper any more.
  func listen(on loop: any DescriptorWatches) throws(SystemCallError) {
    _ = clinux_report_stops_of_children(0)
    switch mode {
    case .passing(let signals):
      let queue = try SignalQueue(PassedSignals.passed + [SIGCHLD])
      _ = try loop.whenReadable(queue.descriptor) {
        for signal in queue.arrivals() {
          signals.receive(signal.number, isFromTerminal: signal.isFromTerminal)
        }
      }
    case .terminal(let signals, let terminal):
      _ = try loop.whenReadable(terminal.queue.descriptor) {
        for signal in terminal.queue.arrivals() { signals.receive(signal.number) }
      }
      try listen(to: terminal.witness, signals, on: loop)
    }
  }

  private func listen(
    to witness: SignalWitness, _ signals: TerminalSignals, on loop: any DescriptorWatches
  ) throws(SystemCallError) {
    var token: LoopToken?
    token = try loop.whenReadable(witness.descriptor) {
      guard let reports = witness.reports() else {
        if let token { loop.unwatch(witness.descriptor, token) }
        return signals.didLoseWitness()
      }
      for report in reports { signals.receive(report) }
    }
  }

  var hasTerminal: Bool {
    if case .terminal = mode { true } else { false }
  }

  func programRuns() {
    switch mode {
    case .passing(let signals): signals.deliverWaiting()
    case .terminal(let signals, _): signals.programRuns()
    }
  }

  func programFallsAsleep() {
    if case .terminal(let signals, _) = mode { signals.programFallsAsleep() }
  }
}
