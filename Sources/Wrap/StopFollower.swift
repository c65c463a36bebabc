import Daemon
import Glibc
import Policy

/// Stops the wrapper when its program was stopped (Ctrl-Z), because the shell waits for the
/// wrapper, and returns the terminal when the shell continues it. It belongs to the loop's thread.
final class StopFollower {
  private let program: any ProgramProcesses
  private let timers: any Timers
  private let wrapperGroup: Int32
  /// True if the program gets a SIGCONT in a moment, which will end the present stop.
  var isAboutToContinue: () -> Bool = { false }

  /// True if the wrapper was stopped together with the program, and the end of that stop hasn't
  /// been handled.
  private var hasStopped = false
  private var timer: LoopToken?
  /// The shell's SIGCONT reaches the processes of a group one after the other: the wrapper may run
  /// while the program still counts as stopped. A stop that is seen before this time counts only if
  /// it lasts.
  private var uncertainUntil = Instant.zero
  /// The number of consecutive stops that the kernel has dropped.
  private var droppedStops = 0
  /// The program's group that had the terminal before the stop.
  private var owner: Int32?

  /// The interval at which the end of a stop is checked. While the wrapper is stopped, its timers
  /// don't run.
  static let pollInterval = Duration.milliseconds(20)
  /// After this number of dropped stops, the wrapper isn't stopped again.
  private static let maxDroppedStops = 3

  init(_ program: any ProgramProcesses, timers: any Timers, wrapperGroup: Int32) {
    self.program = program
    self.timers = timers
    self.wrapperGroup = wrapperGroup
  }

  /// Checks whether the program was stopped.
  func follow() {
    guard program.hasProcess, !program.isAsleep else { return }
    // A stop may be that of the trim. It is checked again afterwards.
    if program.isBeingTrimmed { return pollForEnd() }
    guard let signal = program.stopSignal else {
      droppedStops = 0
      return
    }
    if isAboutToContinue() { return }
    // A shell follows its own job only. Without a shell, a program that is stopped by SIGSTOP is
    // continued by its pid.
    if signal == SIGSTOP, !program.isJobOfShell { return }
    // The shell sees one stop, and continues the wrapper once.
    if !hasStopped {
      if timers.now < uncertainUntil { return pollForEnd() }
      guard droppedStops < Self.maxDroppedStops else { return }
      stop(by: signal)
    }
    pollForEnd()
  }

  private func stop(by signal: Int32) {
    droppedStops += 1
    hasStopped = true
    let foreground = program.foregroundGroup
    owner = foreground.flatMap { program.groups.contains($0) ? $0 : nil }
    // SIGSTOP would also stop a wrapper that no shell continues.
    program.stopWrapper(by: [SIGTTIN, SIGTTOU].contains(signal) ? signal : SIGTSTP)
  }

  /// Waits for the end of the stop, or of the trim. SIGCONT doesn't show a stop's end reliably:
  /// another Ctrl-Z removes a SIGCONT that hasn't been read yet.
  private func pollForEnd() {
    guard timer == nil else { return }
    timer = timers.after(Self.pollInterval) { [unowned self] in
      timer = nil
      if program.isStoppingWrapper { return pollForEnd() }
      if !program.hasDroppedStop { droppedStops = 0 }
      didContinue()
      follow()
    }
  }

  /// Handles the end of a stop. The shell may have continued the wrapper some time ago.
  func didContinue() {
    guard hasStopped else { return }
    hasStopped = false
    uncertainUntil = timers.now + Self.pollInterval
    returnTerminal()
    if program.hasProcess, !program.isAsleep { program.recordUse() }
  }

  /// Gives the terminal back to the program's group. The shell has given it to the wrapper's group,
  /// but a program that is a shell itself had it for its own group.
  private func returnTerminal() {
    guard let owner else { return }
    self.owner = nil
    guard owner != wrapperGroup, program.foregroundGroup == wrapperGroup,
      program.groups.contains(owner)
    else { return }
    program.giveTerminal(to: owner)
  }
}
