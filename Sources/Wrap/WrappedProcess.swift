import CLinux
import Daemon
import Glibc
import Lifecycle
import Linux
import Supervision

/// The processes of a wrapper's program, as signals reach them, the wrapper's own process among them, and their
/// terminal. Tests have one that notes what is done.
protocol ProgramProcesses: AnyObject {
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
  /// It was used: the time until it is idle begins again.
  func noteUse()

  // A program without a terminal.

  /// Sends the signal to the program's process group; false: the group can't be named safely, or has ended.
  func signalGroup(_ signal: Int32) -> Bool
  /// Stops all of its processes; false: they can't be found.
  func stopAll() -> Bool
  func continueAll()
  /// Stops the wrapper itself, so that the shell sees it.
  func stopWrapper()

  // A program that has the wrapper's terminal.

  /// Its first process is still in the process group in which the wrapper is.
  var sharesGroup: Bool { get }
  /// The process groups of all of its processes.
  var groups: Set<Int32> { get }
  /// What has stopped its first process, which isn't asleep; nil: it isn't stopped.
  var stopSignal: Int32? { get }
  /// It sleeps, and its sleep will end by SIGCONT, for which the kernel drops the signal of a Ctrl-Z.
  var losesStops: Bool { get }
  /// Sends the signal to those of its processes that are in the group.
  func signal(_ signal: Int32, group: Int32)
  /// Stops the wrapper itself by the signal, so that the shell sees it.
  func stopWrapper(by signal: Int32)
  /// That is under way, or the shell hasn't continued the wrapper yet.
  var isStoppingWrapper: Bool { get }
  /// The last stop of the wrapper ended at once: the kernel drops it where no shell would continue the wrapper.
  var hasDroppedStop: Bool { get }
  /// The shell waits for the wrapper as its job, and shows that the job has stopped.
  var isJobOfShell: Bool { get }
  /// Whether this process hears of stops of its children.
  func reportStops(_ reported: Bool)

  /// The process group that gets the terminal's keys; nil: the terminal has hung up.
  var foregroundGroup: Int32? { get }
  /// The group gets the terminal's keys from now on. Only from the foreground group.
  func giveTerminal(to group: Int32)
  /// The `SignalWitness` answers with `WitnessReport.answer` when it has reported what it had got before.
  func askWitness()
  /// From now on the witness gets what is sent to this group.
  func putWitness(into group: Int32)
}

final class WrappedProcess: ProgramProcesses {
  private let run: ProgramRun
  private let terminal: WrapperTerminal?
  /// `clinux_stop_count` before the last stop of the wrapper.
  private var stopRequest: UInt32?

  /// - Parameter terminal: which the program has, too.
  init(_ run: ProgramRun, _ terminal: WrapperTerminal?) {
    self.run = run
    self.terminal = terminal
  }

  private var process: WorkerProcess? { run.process }

  /// Looked for among the wrapper's descendants: a look at all of /proc would keep the loop. Without /proc none is
  /// found.
  private var tree: ProcessTree {
    (try? process?.tree(in: ProcessScan.readDescendants())) ?? ProcessTree(processes: [])
  }

  /// Wrappers that its processes have started.
  var innerWrappers: [ProcessStat] { innerWrappers(of: tree.processes) }

  private func innerWrappers(of processes: [ProcessStat]) -> [ProcessStat] {
    processes.map(\.pid).flatMap(children).compactMap {
      // A process that can't be read has been reaped, and its parent knows.
      guard let stat = try? ProcessStat.read($0) else { return nil }
      return stat.name == WrapperTree.processName ? stat : nil
    }
  }

  /// All of its processes, if no cgroup holds them.
  var unheldPids: [Int32] { process?.cgroup == nil ? tree.pids : [] }

  // MARK: all programs

  var hasProcess: Bool { process != nil }

  var isAsleep: Bool {
    switch run.state {
    case .suspending, .suspended, .hibernating, .hibernated, .resuming: true
    default: run.isBusy
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
    // In doubt it is woken.
    return !pids.isEmpty
      && pids.allSatisfy { pid in
        // A process that can't be read may have ended.
        guard let status = try? ProcessStatus.read(pid) else { return false }
        return ProcessStatus.contains(status.ignored, signal)
      }
  }

  func wake(_ reason: String) { run.wake(reason) }

  func signal(_ signal: Int32) {
    // A process that has ended needs no signal.
    try? process?.signal(signal)
  }

  func reap() { run.reapChildren() }
  func noteUse() { run.noteUse() }

  // MARK: a program without a terminal

  /// Until it is reaped, no other group can have its number.
  func signalGroup(_ signal: Int32) -> Bool {
    guard let process, !run.isReaped else { return false }
    return sendSignal(signal, to: -process.identity.pid) == 0
  }

  /// The program's session has no terminal, and there the kernel ignores a SIGTSTP without a handler.
  func stopAll() -> Bool {
    let processes = tree.processes
    for stat in processes {
      // A process that has ended meanwhile, or that may not be signalled, can't be stopped.
      let catches = (try? ProcessStatus.read(stat.pid))?.catches(SIGTSTP) == true
      _ = try? stat.identity.signal(catches ? SIGTSTP : SIGSTOP)
    }
    // These stop their own programs. One that has ended meanwhile needs no signal.
    for wrapper in innerWrappers(of: processes) { _ = try? wrapper.identity.signal(SIGTSTP) }
    return !processes.isEmpty
  }

  func continueAll() {
    let tree = tree
    // What has ended meanwhile needs no SIGCONT.
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
      // What has ended meanwhile needs no signal.
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
