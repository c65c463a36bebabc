import Linux
import Supervision

/// Reaps orphans of workers. They become the daemon's children (PR_SET_CHILD_SUBREAPER), so the
/// daemon must wait for them. It never calls waitpid(-1), which would consume reports about workers
/// and tracees that other components wait for. Belongs to the loop's thread.
final class OrphanReaper {
  static let interval = Duration.milliseconds(50)

  private let processes: any Processes
  /// The pids of children that have an owner, which waits for them.
  private let owned: () -> Set<Int32>
  private let pause: TimedOperation

  init(
    timers: any Timers, processes: any Processes,
    owned: @escaping () -> Set<Int32>
  ) {
    pause = TimedOperation(timers)
    self.processes = processes
    self.owned = owned
  }

  /// Owners have: workers, also while they are started; commands of `shed:` and `on:`; and probes.
  convenience init(
    timers: any Timers, processes: any Processes, workers: WorkerRegistry,
    launcher: WorkerLauncher, senses: Senses, hooks: HookRunner
  ) {
    self.init(timers: timers, processes: processes) { [probes = senses.probes] in
      let owned = workers.values.flatMap {
        [
          $0.process?.identity.pid, $0.shed?.commandPid, $0.ending?.stopCommand?.program.pid,
        ].compactMap(\.self)
      }
      return Set(owned + launcher.pids + probes.commandPids + hooks.pids)
    }
  }

  /// Reaps all orphans that have ended. Called after each SIGCHLD.
  func reapOrphans() {
    let ownedPids = owned()
    let all = processes.children
    // One of them may be a worker that is just being started. Its owner must get its end.
    if processes.anyChildIsUnclaimed {
      if !pause.isUnderWay { pause.wait(Self.interval) { [unowned self] in reapOrphans() } }
      return
    }
    for pid in all where !ownedPids.contains(pid) { processes.reapIfUnclaimed(pid) }
  }
}
