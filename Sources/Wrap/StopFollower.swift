import Daemon
import Glibc
import Linux
import Policy

/// Stops the wrapper, for which the shell waits, when its program was stopped (Ctrl-Z), and gives the terminal back
/// when the shell continues it. Belongs to the loop's thread.
final class StopFollower {
  private let program: any ProgramProcesses
  private let timers: any Timers
  private let ownGroup: Int32
  /// The program gets a SIGCONT in a moment: a stop that is seen now is over then.
  var isAboutToContinue: () -> Bool = { false }

  /// The wrapper was stopped together with the program, and the end of that stop hasn't been handled.
  private var hasStopped = false
  private var look: LoopToken?
  /// The shell's SIGCONT reaches the processes of a group one after the other: the wrapper may run while the program
  /// still counts as stopped. A stop that is seen before this counts only if it lasts.
  private var unsureUntil = Instant.zero
  /// Stops in a row that the kernel has dropped.
  private var vainStops = 0
  /// The program's group that had the terminal before the stop.
  private var owner: Int32?

  /// While the wrapper is stopped, no time passes for it.
  static let pace = Duration.milliseconds(20)
  private static let mostVainStops = 3

  init(_ program: any ProgramProcesses, timers: any Timers, ownGroup: Int32) {
    self.program = program
    self.timers = timers
    self.ownGroup = ownGroup
  }

  /// The program may have been stopped.
  func follow() {
    guard program.hasProcess, !program.isAsleep else { return }
    guard let signal = program.stopSignal else {
      vainStops = 0
      return
    }
    if isAboutToContinue() { return }
    // A shell follows its own job only. Elsewhere a program that is stopped by SIGSTOP is continued by its pid.
    if signal == SIGSTOP, !program.isJobOfShell { return }
    // The shell sees one stop, and continues the wrapper once.
    if !hasStopped {
      if timers.now < unsureUntil { return lookForEnd() }
      guard vainStops < Self.mostVainStops else { return }
      stop(by: signal)
    }
    lookForEnd()
  }

  private func stop(by signal: Int32) {
    vainStops += 1
    hasStopped = true
    let foreground = program.foregroundGroup
    owner = foreground.flatMap { program.groups.contains($0) ? $0 : nil }
    // SIGSTOP would also stop a wrapper that no shell continues.
    program.stopWrapper(by: [SIGTTIN, SIGTTOU].contains(signal) ? signal : SIGTSTP)
  }

  /// The SIGCONT that ended the stop can't be relied on: another Ctrl-Z removes it before it is read.
  private func lookForEnd() {
    guard look == nil else { return }
    look = timers.after(Self.pace) { [unowned self] in
      look = nil
      if program.isStoppingWrapper { return lookForEnd() }
      if !program.hasDroppedStop { vainStops = 0 }
      noteContinue()
      follow()
    }
  }

  /// The shell has continued the wrapper, after any time.
  func noteContinue() {
    guard hasStopped else { return }
    hasStopped = false
    unsureUntil = timers.now + Self.pace
    returnTerminal()
    if program.hasProcess, !program.isAsleep { program.noteUse() }
  }

  /// The shell has given the terminal to the wrapper's group. A program that is a shell had it for its own group.
  private func returnTerminal() {
    guard let owner else { return }
    self.owner = nil
    guard owner != ownGroup, program.foregroundGroup == ownGroup, program.groups.contains(owner)
    else { return }
    program.giveTerminal(to: owner)
  }
}
