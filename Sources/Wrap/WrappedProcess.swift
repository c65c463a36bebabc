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
    // A process whose handlers can't be read has ended.
    (try? process?.catches(signal)) == true
  }

  func ignores(_ signal: Int32) -> Bool {
    // In doubt it is woken: a process that can't be read may have ended.
    guard let tree = try? process?.tree(), !tree.pids.isEmpty else { return false }
    return tree.pids.allSatisfy { pid in
      // As above.
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
    // Without /proc they can't be found.
    guard let tree = try? process?.tree() else { return false }
    for stat in tree.processes {
      // A process that has ended meanwhile, or that may not be signalled, can't be stopped.
      let catches = (try? ProcessStatus.read(stat.pid))?.catches(SIGTSTP) == true
      _ = try? stat.identity.signal(catches ? SIGTSTP : SIGSTOP)
    }
    return true
  }

  func continueAll() {
    // As above.
    try? process?.tree().continueAll()
  }

  func stopWrapper() { sendSignal(SIGSTOP, to: getpid()) }
}

extension WrappedProcess: TerminalProgram {
  var sharesGroup: Bool { process.map { getpgid($0.identity.pid) == getpgrp() } ?? false }

  // Without /proc none is found.
  private var processes: [ProcessStat] {
    (try? process?.tree(in: ProcessScan.readDescendants()).processes) ?? []
  }

  /// All of its processes, if no cgroup holds them.
  var unheldPids: [Int32] { process?.cgroup == nil ? processes.map(\.pid) : [] }

  var groups: Set<Int32> { Set(processes.map(\.processGroup)) }

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
    for stat in processes where stat.processGroup == group {
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
