/// One look at all processes of the machine, in which the trees of many workers can be found: to read
/// all of /proc for each of a hundred workers takes half a second.
public struct ProcessScan: Sendable {
  private let processes: [ProcessStat]

  public static func take() throws(SystemCallError) -> ProcessScan {
    ProcessScan(processes: try ProcessTree.living(listNumbers("/proc"), skipsHidden: true))
  }

  /// As `ProcessTree.discover` finds it without a cgroup.
  public func tree(root: ProcessIdentity, session: Int32? = nil) -> ProcessTree {
    let members = ProcessTree.members(of: processes, root: root, session: session)
    return ProcessTree(processes: ProcessTree.parentsFirst(members))
  }
}
