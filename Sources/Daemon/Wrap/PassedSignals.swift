import CLinux
import Glibc
import Lifecycle
import Linux

// What is sent to a wrapper is meant for its program.

extension Daemon {
  /// All that a host or a terminal sends. SIGKILL and SIGSTOP can't be passed on: of the first, the
  /// guardian hears.
  private static let passed = [
    SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM, SIGCONT, SIGTSTP, SIGWINCH,
  ]

  func passSignals() throws(SystemCallError) {
    _ = clinux_ignore_stops_of_children()
    let signals = try SignalQueue(Self.passed + [SIGCHLD])
    try loop.watch(signals.descriptor, .readable) { [unowned self] _ in
      for signal in signals.arrivals() {
        take(signal.number, isFromTerminal: signal.isFromTerminal)
      }
    }
  }

  private func take(_ signal: Int32, isFromTerminal: Bool) {
    switch signal {
    case SIGCHLD:
      hibernation.reapChildren()
      orphans.reapOrphans()
    case SIGTSTP: hold()
    case SIGCONT: release()
    default: pass(signal, toGroup: isFromTerminal)
    }
  }

  /// To the program, where it runs; a sleeping one is woken for it.
  private func pass(_ signal: Int32, toGroup: Bool) {
    guard let wrapped, let runtime = workers[wrapped.id], let process = runtime.process else {
      return
    }
    if isAsleep(runtime) {
      // Nobody is woken for what would be dropped: a terminal's new size, mostly.
      if signal == SIGWINCH, (try? process.catches(signal)) != true { return }
      wrapped.waitingSignals.append(signal)
      driver.send(.wakeNeeded(wrapped.id, "the signal \(signal)"))
      return
    }
    // From a terminal all of its foreground group would get it. Until it is reaped, no other group can
    // have its number.
    if toGroup, !runtime.isReaped, Glibc.kill(-process.identity.pid, signal) == 0 { return }
    try? process.signal(signal)
  }

  /// Or on its way from or to sleep.
  private func isAsleep(_ runtime: WorkerRuntime) -> Bool {
    switch engine.state(of: runtime.id) {
    case .suspending, .suspended, .hibernating, .hibernated, .resuming: true
    default: runtime.isBusy
    }
  }

  func deliverWaitingSignals() {
    guard let wrapped, let process = workers[wrapped.id]?.process else { return }
    for signal in wrapped.waitingSignals { try? process.signal(signal) }
    wrapped.waitingSignals = []
  }

  /// Ctrl-Z: all of it stops, and we do, so that the shell sees it. Its session has no terminal, in
  /// which a SIGTSTP that isn't caught does nothing.
  private func hold() {
    guard let wrapped, let runtime = workers[wrapped.id] else { return }
    if !isAsleep(runtime), let tree = try? runtime.process?.tree() {
      for stat in tree.processes {
        let catches = (try? ProcessStatus.read(stat.pid))?.catches(SIGTSTP) == true
        // One that has ended meanwhile, or that we may not signal, can't be stopped.
        _ = try? stat.identity.signal(catches ? SIGTSTP : SIGSTOP)
      }
      wrapped.isHeld = true
    }
    Glibc.kill(getpid(), SIGSTOP)
  }

  /// A sleeping program stays where it is.
  private func release() {
    guard let wrapped, let runtime = workers[wrapped.id], let process = runtime.process else {
      return
    }
    if wrapped.isHeld {
      wrapped.isHeld = false
      try? process.tree().continueAll()
    } else if !isAsleep(runtime) {
      try? process.signal(SIGCONT)
    }
  }
}
