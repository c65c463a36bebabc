import Glibc

/// What all programs do with a wrapper's signals.
protocol SignalReceiver: AnyObject {
  /// It was started, and its end hasn't been noted yet.
  var hasProcess: Bool { get }
  /// It sleeps, or is being suspended or resumed.
  var isAsleep: Bool { get }
  /// It has a handler for the signal.
  func catches(_ signal: Int32) -> Bool
  /// All of its processes ignore the signal.
  func ignores(_ signal: Int32) -> Bool
  func wake(_ reason: String)
  /// To its first process.
  func signal(_ signal: Int32)
  /// A child or a descendant without a parent has ended.
  func reap()
}

/// A program without a terminal. Tests hand in their own.
protocol SignalTarget: SignalReceiver {
  /// Sends the signal to the program's process group; false: the group can't be named safely, or has ended.
  func signalGroup(_ signal: Int32) -> Bool
  /// Stops all of its processes; false: they can't be found.
  func stopAll() -> Bool
  func continueAll()
  /// Stops the wrapper itself, so that the shell sees it.
  func stopWrapper()
}

/// Passes signals to the wrapper on to its program, which has no terminal, and wakes a sleeping program for them.
/// Belongs to the loop's thread.
final class PassedSignals {
  private let target: any SignalTarget
  /// Their sender means the program's whole process group: in the program's own place, the wrapper got what was
  /// sent to its group.
  private let reachGroup: Bool
  /// Signals for a sleeping program, until it runs.
  private var waiting: [Int32] = []
  /// Stopped by the terminal (Ctrl-Z), together with the wrapper.
  private var isHeld = false

  /// All signals that a host or a terminal sends. SIGKILL and SIGSTOP can't be passed on; the guardian acts on
  /// SIGKILL.
  static let passed = [
    SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM, SIGCONT, SIGTSTP, SIGWINCH,
  ]

  init(_ target: any SignalTarget, reachGroup: Bool = false) {
    self.target = target
    self.reachGroup = reachGroup
  }

  func receive(_ signal: Int32, isFromTerminal: Bool = false) {
    switch signal {
    case SIGCHLD: target.reap()
    case SIGTSTP: hold()
    case SIGCONT: letGo()
    default: pass(signal, toGroup: isFromTerminal)
    }
  }

  private func pass(_ signal: Int32, toGroup: Bool) {
    guard target.hasProcess else { return }
    if target.isAsleep {
      // A program isn't woken for a signal that it would drop, mostly a terminal's new size.
      if signal == SIGWINCH, !target.catches(signal) { return }
      // The kernel drops an ignored signal when it is sent. Delivered after the wake, it could meet a handler: an
      // idle Jupyter kernel ignores SIGINT, and its next cell would be interrupted.
      if target.ignores(signal) { return }
      waiting.append(signal)
      return target.wake("the signal \(signal)")
    }
    // A terminal sends a signal to its whole foreground group.
    deliver(signal, toGroup: toGroup || reachGroup)
  }

  private func deliver(_ signal: Int32, toGroup: Bool) {
    if toGroup, target.signalGroup(signal) { return }
    target.signal(signal)
  }

  /// The program runs: sends it the signals that waited.
  func deliverWaiting() {
    guard target.hasProcess else { return }
    for signal in waiting { deliver(signal, toGroup: reachGroup) }
    waiting = []
  }

  /// Ctrl-Z: stops the program and the wrapper, so that the shell sees it.
  private func hold() {
    if target.hasProcess, !target.isAsleep, target.stopAll() { isHeld = true }
    target.stopWrapper()
  }

  /// A sleeping program stays where it is.
  private func letGo() {
    guard target.hasProcess else { return }
    if isHeld {
      isHeld = false
      target.continueAll()
    } else if !target.isAsleep {
      target.signal(SIGCONT)
    }
  }
}
