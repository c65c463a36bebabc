import Glibc
import Linux
import Policy
import Supervision

/// The children of this process. `KernelChildren` has the real ones; tests provide their own.
protocol ChildProcesses: AnyObject {
  /// A child without an owner is being forked: it can't be distinguished from an orphan.
  var anyIsUnclaimed: Bool { get }
  var all: [Int32] { get }
  /// It has ended, and may be waited for by `OrphanReaper`.
  func mayBeReaped(_ pid: Int32) -> Bool
  func reap(_ pid: Int32)
}

/// Orphans of workers become the daemon's children (PR_SET_CHILD_SUBREAPER) and must be waited for. Never with
/// waitpid(-1): that would take the reports of workers and tracees from the parts that wait for them. Belongs
/// to the loop's thread.
final class OrphanReaper {
  static let interval = Duration.milliseconds(50)

  private let timers: any Timers
  private let children: any ChildProcesses
  /// Children that have an owner, which waits for them.
  private let owned: () -> Set<Int32>
  private var timer: EventLoop.Token?

  init(
    timers: any Timers, children: any ChildProcesses = KernelChildren(),
    owned: @escaping () -> Set<Int32>
  ) {
    self.timers = timers
    self.children = children
    self.owned = owned
  }

  /// Workers, those that are being started, commands of `shed:` and `on:`, and probes have owners.
  convenience init(
    timers: any Timers, workers: WorkerRegistry, launcher: WorkerLauncher,
    senses: Senses, hooks: HookRunner
  ) {
    self.init(timers: timers) { [probes = senses.probes] in
      let owned = workers.values.flatMap {
        [$0.process?.identity.pid, $0.shed?.commandPid, $0.run.stopCommand?.pid].compactMap(\.self)
      }
      return Set(owned + launcher.pids + probes.commandPids + hooks.pids)
    }
  }

  /// After each SIGCHLD.
  func reapOrphans() {
    let known = owned()
    let all = children.all
    // One of them may be a worker that is being started, and its owner must get its end.
    if children.anyIsUnclaimed { return reapLater() }
    for pid in all where !known.contains(pid) && children.mayBeReaped(pid) { children.reap(pid) }
  }

  private func reapLater() {
    guard timer == nil else { return }
    timer = timers.after(Self.interval) { [weak self] in
      self?.timer = nil
      self?.reapOrphans()
    }
  }
}

final class KernelChildren: ChildProcesses {
  var anyIsUnclaimed: Bool { ForkedChild.anyIsUnclaimed }

  var all: [Int32] { children(of: getpid()) }

  func mayBeReaped(_ pid: Int32) -> Bool {
    // A child that can't be read has been waited for, or is looked at the next time.
    guard let stat = try? ProcessStat.read(pid) else { return false }
    return stat.isEnded && !ProcessRemover.shared.holds(pid)
  }

  func reap(_ pid: Int32) {
    _ = reapIfEnded(pid)
  }
}
