import CLinux
import Daemon
import Glibc
import Lifecycle
import Linux
import Supervision

/// The processes of a wrapper's program as the targets of signals, the wrapper's own process, and
/// their terminal. Tests have an implementation that records the calls.
protocol ProgramProcesses: AnyObject {
  /// True if the program was started and its end hasn't been recorded yet.
  var hasProcess: Bool { get }
  /// True if the program sleeps, or is being suspended or resumed.
  var isAsleep: Bool { get }
  /// True while memory of the running program is moved (a trim or a fill), which may stop it for a
  /// moment.
  var isBeingTrimmed: Bool { get }
  /// Whether one of the processes has a handler for the signal.
  func catches(_ signal: Int32) -> Bool
  /// Whether all of the processes ignore the signal.
  func ignores(_ signal: Int32) -> Bool
  func wake(_ reason: String)
  /// Sends a signal to the first process.
  func signal(_ signal: Int32)
  /// Reaps children, and orphans among the descendants, that have ended.
  func reap()
  /// Records a use of the program: the time until it is idle starts again.
  func recordUse()

  // The following members are for a program without a terminal.

  /// Sends the signal to the program's process group. Returns false if the group can't be addressed
  /// safely, or has ended.
  func signalGroup(_ signal: Int32) -> Bool
  /// Stops all of the processes. Returns false if they can't be found.
  func stopAll() -> Bool
  func continueAll()
  /// Stops the wrapper itself, so that the shell sees the stop.
  func stopWrapper()

  // The following members are for a program that has the wrapper's terminal.

  /// True if the first process is still in the process group of the wrapper.
  var sharesGroup: Bool { get }
  /// The process groups of all of the processes.
  var groups: Set<Int32> { get }
  /// The signal that has stopped the first process, or nil if that isn't stopped. It isn't used
  /// while the program sleeps.
  var stopSignal: Int32? { get }
  /// True if the program sleeps, and its sleep will end by SIGCONT, for which the kernel drops the
  /// signal of a Ctrl-Z.
  var losesStops: Bool { get }
  /// Sends the signal to those of the processes that are in the group.
  func signal(_ signal: Int32, group: Int32)
  /// Stops the wrapper itself by the signal, so that the shell sees the stop.
  func stopWrapper(by signal: Int32)
  /// True while that stop is under way, or the shell hasn't continued the wrapper yet.
  var isStoppingWrapper: Bool { get }
  /// True if the last stop of the wrapper ended at once: the kernel drops it if no shell would
  /// continue the wrapper.
  var hasDroppedStop: Bool { get }
  /// True if the shell waits for the wrapper as its job, and shows that the job has stopped.
  var isJobOfShell: Bool { get }
  /// Sets whether the kernel reports stops of children to this process.
  func reportStops(_ reported: Bool)

  /// The process group that gets the terminal's keys, or nil if the terminal has hung up.
  var foregroundGroup: Int32? { get }
  /// Gives the terminal's keys to the group. Call it only in the foreground group.
  func giveTerminal(to group: Int32)
  /// Asks the `SignalWitness`, which answers with `WitnessReport.answer` when it has reported
  /// everything that it received before.
  func askWitness()
  /// Moves the witness to this group. From then on it receives the signals of the group.
  func putWitness(into group: Int32)
}

final class WrappedProcess: ProgramProcesses {
  private let run: ProgramRun
  private let terminal: WrapperTerminal?
  /// The value of `clinux_stop_count` before the last stop of the wrapper.
  private var stopRequest: UInt32?

  /// - Parameter terminal: the terminal that wrapper and program share; nil if they have none.
  init(_ run: ProgramRun, _ terminal: WrapperTerminal?) {
    self.run = run
    self.terminal = terminal
  }

  private var process: WorkerProcess? { run.process }

  /// The program's processes, searched for among the wrapper's descendants: a scan of all of /proc
  /// would block the loop. It is empty if /proc can't be read.
  private var tree: ProcessTree {
    (try? process?.tree(in: ProcessScan.readDescendants())) ?? ProcessTree(processes: [])
  }

  /// The wrappers that the program's processes have started.
  var innerWrappers: [ProcessStat] { innerWrappers(of: tree.processes) }

  private func innerWrappers(of processes: [ProcessStat]) -> [ProcessStat] {
    processes.map(\.pid).flatMap(children).compactMap {
      // A process that can't be read has been reaped, so its parent knows of its end.
      guard let stat = try? ProcessStat.read($0) else { return nil }
      return stat.name == WrapperTree.processName ? stat : nil
    }
  }

  /// The pids of all of the processes if they aren't in a cgroup, and none otherwise.
  var pidsOutsideCgroup: [Int32] { process?.cgroup == nil ? tree.pids : [] }

  // MARK: all programs

  var hasProcess: Bool { process != nil }

  var isAsleep: Bool { Self.isAsleep(run.state, isBusy: run.isBusy) }
  var isBeingTrimmed: Bool { run.state?.runs == true && run.isBusy }

  /// A running program isn't asleep while it is trimmed: no wake would follow, and signals that
  /// wait for one would never be sent.
  static func isAsleep(_ state: WorkerState?, isBusy: Bool) -> Bool {
    switch state {
    case .suspending, .suspended, .hibernating, .hibernated, .resuming: true
    case .foreground, .background: false
    default: isBusy
    }
  }

  func catches(_ signal: Int32) -> Bool {
    tree.pids.contains { pid in
      // A process whose handlers can't be read has ended.
      (try? ProcessStatus.read(pid))?.catches(signal) == true
    }
  }

  func ignores(_ signal: Int32) -> Bool {
    let pids = tree.pids
    // If no process was found, the program is woken.
    return !pids.isEmpty
      && pids.allSatisfy { pid in
        // A process that can't be read may have ended.
        guard let status = try? ProcessStatus.read(pid) else { return false }
        return ProcessStatus.contains(status.ignored, signal)
      }
  }

  func wake(_ reason: String) { run.wake(reason) }

  func signal(_ signal: Int32) {
    // It would end the stop of the trim, which continues the program itself.
    if signal == SIGCONT, isBeingTrimmed { return }
    // A process that has ended needs no signal.
    try? process?.signal(signal)
  }

  func reap() { run.reapChildren() }
  func recordUse() { run.recordUse() }

  // MARK: a program without a terminal

  /// Until the process is reaped, no other group can have its number.
  func signalGroup(_ signal: Int32) -> Bool {
    guard let process, !run.isReaped else { return false }
    return sendSignal(signal, to: -process.identity.pid) == 0
  }

  /// The program's session has no terminal. There the kernel ignores a SIGTSTP without a handler,
  /// so SIGSTOP is used.
  func stopAll() -> Bool {
    let processes = tree.processes
    for stat in processes {
      // A process that has ended in the meantime, or that may not be signalled, can't be stopped.
      let catches = (try? ProcessStatus.read(stat.pid))?.catches(SIGTSTP) == true
      _ = try? stat.identity.signal(catches ? SIGTSTP : SIGSTOP)
    }
    // Inner wrappers stop their own programs. One that has ended in the meantime needs no signal.
    for wrapper in innerWrappers(of: processes) { _ = try? wrapper.identity.signal(SIGTSTP) }
    return !processes.isEmpty
  }

  func continueAll() {
    let tree = tree
    // A process that has ended in the meantime needs no SIGCONT.
    for wrapper in innerWrappers(of: tree.processes) { _ = try? wrapper.identity.signal(SIGCONT) }
    try? tree.continueAll()
  }

  func stopWrapper() { sendSignal(SIGSTOP, to: getpid()) }

  // MARK: a program that has the wrapper's terminal

  var sharesGroup: Bool { process.map { getpgid($0.identity.pid) == getpgrp() } ?? false }

  var groups: Set<Int32> { Set(tree.processes.map(\.processGroup)) }

  var stopSignal: Int32? {
    guard let process, !run.isReaped else { return nil }
    let signal = clinux_stop_of_child(process.identity.pid)
    return signal > 0 ? signal : nil
  }

  var losesStops: Bool {
    switch run.state {
    case .suspending, .suspended: process.map { $0.cgroup == nil } ?? false
    case .hibernating, .hibernated: true
    default: false
    }
  }

  func signal(_ signal: Int32, group: Int32) {
    for stat in tree.processes where stat.processGroup == group {
      // A process that has ended in the meantime needs no signal.
      _ = try? stat.identity.signal(signal)
    }
  }

  func stopWrapper(by signal: Int32) {
    let count = clinux_stop_count()
    // Without a thread the shell doesn't see the stop.
    stopRequest = clinux_stop_by_signal(signal) == 0 ? count : nil
  }

  var isStoppingWrapper: Bool { stopRequest.map { clinux_stop_count() &- $0 < 2 } ?? false }

  var hasDroppedStop: Bool { stopRequest.map { clinux_stop_count() &- $0 > 2 } ?? true }

  var isJobOfShell: Bool { getpgrp() == getpid() && getsid(0) != getpid() }

  func reportStops(_ reported: Bool) { _ = clinux_report_stops_of_children(reported ? 1 : 0) }

  var foregroundGroup: Int32? { terminal?.foregroundGroup }
  func giveTerminal(to group: Int32) { terminal?.give(to: group) }
  func askWitness() { terminal?.witness.ask() }
  func putWitness(into group: Int32) { terminal?.witness.join(group) }
}
