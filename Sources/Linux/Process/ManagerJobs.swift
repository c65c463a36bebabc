/// Programs that a worker's manager runs beside the worker in the same cgroup.
public struct ManagerJobs: Sendable {
  private let manager: Int32
  private let members: Set<ProcessIdentity>

  /// The result is nil if the manager isn't known.
  ///
  /// - Parameters:
  ///   - tree: the processes in the cgroup.
  ///   - members: those that belong to the worker itself; nil: all in `tree`.
  public init?(root: ProcessIdentity, tree: ProcessTree, members: Set<ProcessIdentity>? = nil) {
    guard let manager = tree.processes.first(where: { $0.identity == root })?.parent, manager > 0
    else { return nil }
    self.manager = manager
    self.members = members ?? Set(tree.processes.map(\.identity))
  }

  /// Returns a process that the manager itself has started since, in a session of its own, as
  /// service managers start `ExecReload=`, `ExecStop=` and the like. It must not be stopped,
  /// because the manager waits for it.
  public func running(in tree: ProcessTree) -> ProcessStat? {
    tree.processes.first(where: isJob)
  }

  /// Returns the processes without such programs and without what those have started.
  public func absent(from tree: ProcessTree) -> ProcessTree {
    var jobs = Set(tree.processes.filter(isJob).map(\.pid))
    // Parents come before their children in the list. If a job ends, its child stays in its
    // session.
    for stat in tree.processes
    where !members.contains(stat.identity)
      && (jobs.contains(stat.parent) || jobs.contains(stat.session))
    {
      jobs.insert(stat.pid)
    }
    return ProcessTree(processes: tree.processes.filter { !jobs.contains($0.pid) })
  }

  private func isJob(_ stat: ProcessStat) -> Bool {
    stat.parent == manager && stat.session == stat.pid && !members.contains(stat.identity)
  }
}
