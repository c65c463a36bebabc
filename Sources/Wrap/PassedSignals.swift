import Glibc
import Policy

/// Passes signals that the wrapper receives on to its program, which has no terminal, and wakes a
/// sleeping program for them. It belongs to the loop's thread.
final class PassedSignals {
  private let target: any ProgramProcesses
  /// True if senders mean the program's whole process group. Without a wrapper, the program's group
  /// would have received what the wrapper's group receives.
  private let reachGroup: Bool
  /// Signals for a program that sleeps or isn't started yet. They wait until it runs.
  private var waiting: [Int32] = []
  /// True while the program is stopped by the terminal (Ctrl-Z), together with the wrapper.
  private var isStopped = false

  /// All signals that a host or a terminal sends. SIGKILL and SIGSTOP can't be passed on; the
  /// guardian acts on SIGKILL.
  static let passed = [
    SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM, SIGCONT, SIGTSTP, SIGWINCH,
  ]

  init(_ target: any ProgramProcesses, reachGroup: Bool = false) {
    self.target = target
    self.reachGroup = reachGroup
  }

  func receive(_ signal: Int32, isFromTerminal: Bool = false) {
    switch signal {
    case SIGCHLD: target.reap()
    case SIGTSTP: stopProgram()
    case SIGCONT: continueProgram()
    default: pass(signal, toGroup: isFromTerminal)
    }
  }

  private func pass(_ signal: Int32, toGroup: Bool) {
    // A program that isn't started yet gets the signal when it runs. One that has ended gets none.
    guard target.hasProcess else { return waiting.append(signal) }
    if target.isAsleep {
      // A program isn't woken for a signal that it would drop. Mostly that is a terminal's new
      // size.
      if signal == SIGWINCH, !target.catches(signal) { return }
      // The kernel drops an ignored signal when it is sent. Delivered after the wake, it could
      // reach a handler: an idle Jupyter kernel ignores SIGINT, and its next cell would be
      // interrupted.
      if target.ignores(signal) { return }
      waiting.append(signal)
      return target.wake(Signals.text(signal))
    }
    // A terminal sends a signal to its whole foreground group.
    deliver(signal, toGroup: toGroup || reachGroup)
  }

  private func deliver(_ signal: Int32, toGroup: Bool) {
    if toGroup, target.signalGroup(signal) { return }
    target.signal(signal)
  }

  /// Sends the signals that waited, because the program runs.
  func deliverWaiting() {
    guard target.hasProcess else { return }
    for signal in waiting { deliver(signal, toGroup: reachGroup) }
    waiting = []
  }

  /// Stops the program and the wrapper after Ctrl-Z, so that the shell sees the stop.
  private func stopProgram() {
    if target.hasProcess, !target.isAsleep, target.stopAll() { isStopped = true }
    target.stopWrapper()
  }

  /// Continues a stopped program. A sleeping program isn't woken.
  private func continueProgram() {
    guard target.hasProcess else { return }
    if isStopped {
      isStopped = false
      target.continueAll()
    } else if !target.isAsleep {
      target.signal(SIGCONT)
    }
  }
}
