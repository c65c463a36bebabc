import CLinux
import Daemon
import Glibc
import Lifecycle
import Linux
import Supervision

/// The processes of a wrapper's worker, as its signals reach them.
final class WrappedProcess {
  private let run: ProgramRun
  /// `clinux_stop_count` before the last stop of the wrapper.
  private var stopRequest: UInt32?

  init(_ run: ProgramRun) { self.run = run }

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
}

extension WrappedProcess: SignalReceiver {
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
}

extension WrappedProcess: SignalTarget {
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
}

extension WrappedProcess: TerminalProgram {
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

  func noteUse() { run.noteUse() }

  func reportStops(_ reported: Bool) { _ = clinux_report_stops_of_children(reported ? 1 : 0) }
}
