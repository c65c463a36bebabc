import Linux
import Policy
import Supervision

/// Orphans of workers become the daemon's children (PR_SET_CHILD_SUBREAPER) and must be waited for. Never with
/// waitpid(-1): that would take the reports of workers and tracees from the parts that wait for them. Belongs
/// to the loop's thread.
final class OrphanReaper {
  static let interval = Duration.milliseconds(50)

  private let timers: any Timers
  private let processes: any Processes
  /// Children that have an owner, which waits for them.
  private let owned: () -> Set<Int32>
  private var timer: EventLoop.Token?

  init(
    timers: any Timers, processes: any Processes,
    owned: @escaping () -> Set<Int32>
  ) {
    self.timers = timers
    self.processes = processes
    self.owned = owned
  }

  /// Workers, those that are being started, commands of `shed:` and `on:`, and probes have owners.
  convenience init(
    timers: any Timers, processes: any Processes, workers: WorkerRegistry,
    launcher: WorkerLauncher, senses: Senses, hooks: HookRunner
  ) {
    self.init(timers: timers, processes: processes) { [probes = senses.probes] in
      let owned = workers.values.flatMap {
        [$0.process?.identity.pid, $0.shed?.commandPid, $0.run.stopCommand?.pid].compactMap(\.self)
      }
      return Set(owned + launcher.pids + probes.commandPids + hooks.pids)
    }
  }

  /// After each SIGCHLD.
  func reapOrphans() {
    let known = owned()
    let all = processes.children
    // One of them may be a worker that is being started, and its owner must get its end.
    if processes.anyChildIsUnclaimed { return reapLater() }
    for pid in all where !known.contains(pid) && processes.mayBeReaped(pid) { processes.reap(pid) }
  }

  private func reapLater() {
    guard timer == nil else { return }
    timer = timers.after(Self.interval) { [weak self] in
      self?.timer = nil
      self?.reapOrphans()
    }
  }
}
