import Glibc
import Linux
import Policy

/// Detects that a manager needs a worker which sleeps in the manager's cgroup. The manager's
/// programs (`ExecReload=`, `docker exec`) appear in the group, its signals stay pending, its
/// SIGCONT lets a stopped process run, and its SIGKILL removes one. The kernel reports none of
/// these to a third party, so `reasonToWake` is called a few times per second while the worker
/// sleeps.
public struct SleepWatch: Sendable {
  private let cgroup: WorkerCgroup?
  /// The processes of the worker, parents before their children.
  public let members: [ProcessIdentity]
  /// Signals that were already pending and blocked when it fell asleep. The program leaves them so
  /// by choice.
  private let leftPending: [Int32: UInt64]

  /// Create it for a tree that has just come to rest.
  public init(of tree: ProcessTree, in cgroup: WorkerCgroup?) {
    self.cgroup = cgroup
    members = tree.processes.map(\.identity)
    var left: [Int32: UInt64] = [:]
    for process in tree.processes {
      // If it has ended, `reasonToWake` detects that.
      guard let status = try? ProcessStatus.read(process.pid) else { continue }
      left[process.pid] = status.blockedPending
    }
    leftPending = left
  }

  /// The reason why the worker should run, as a clause, or nil if it can sleep on. The call reads
  /// /proc.
  public func reasonToWake() -> String? {
    for member in members {
      let status: ProcessStatus
      do throws(SystemCallError) { status = try ProcessStatus.read(member.pid) } catch {
        // A process that can't be read now is checked again the next time.
        guard error.meansVanished else { continue }
        return "the end of its process \(member.pid)"
      }
      if let signal = Self.wakingSignal(status, except: leftPending[member.pid] ?? 0) {
        return "\(Signals.text(signal)) to its process \(member.pid)"
      }
      // An ended process stays a zombie while its parent sleeps.
      if status.state.isEnded { return "the end of its process \(member.pid)" }
      // A frozen process shows another state. It sleeps on until it is thawed.
      if !status.state.isAtRest, !ForeignFreeze.holds(member.pid) {
        return "SIGCONT to its process \(member.pid)"
      }
    }
    return newcomer()
  }

  private func newcomer() -> String? {
    // A cgroup that was removed has no new processes.
    guard let cgroup, let pids = try? cgroup.processes() else { return nil }
    let memberPIDs = Set(members.map(\.pid))
    for pid in pids where !memberPIDs.contains(pid) {
      // The process has ended.
      guard let stat = try? ProcessStat.read(pid), !stat.isEnded else { continue }
      return "process \(pid) (\(stat.name)), started in its cgroup"
    }
    return nil
  }

  /// The first pending signal that asks the program to do something.
  static func wakingSignal(_ status: ProcessStatus, except left: UInt64) -> Int32? {
    let all = status.pendingForProcess | status.pendingForThread
    let pending = all & ~status.ignored & ~left
    return (1...64).first { signal in
      guard ProcessStatus.contains(pending, signal) else { return false }
      // Stopping the other processes has caused SIGCHLD. Programs send SIGURG to their own threads.
      if [SIGCHLD, SIGURG, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU].contains(signal) { return false }
      // Without a handler the kernel drops the signal. A program that waits for it has blocked it.
      if signal == SIGWINCH { return status.catches(signal) }
      return true
    }
  }
}
