import Glibc

/// One look at all processes of the machine, in which the trees of many workers can be found: to read
/// all of /proc for each of a hundred workers takes half a second.
public struct ProcessScan: Sendable {
  private let processes: [ProcessStat]

  public static func take() throws(SystemCallError) -> ProcessScan {
    ProcessScan(processes: try ProcessTree.living(listNumbers("/proc"), skipsHidden: true))
  }

  /// The same of our own descendants only, which is cheap however many others there are. For a
  /// parent that its descendants can't lose (`clinux_become_subreaper`).
  public static func takeDescendants() throws(SystemCallError) -> ProcessScan {
    var found: [Int32] = []
    var parents = [getpid()]
    while let parent = parents.popLast() {
      for thread in (try? threads(of: parent)) ?? [] {
        // A thread that has ended meanwhile has passed its children on to another.
        let list = (try? readNamedFile("/proc/\(parent)/task/\(thread)/children")) ?? []
        let children: [Int32] = list.words().compactMap { $0.number() }
        found += children
        parents += children
      }
    }
    return ProcessScan(processes: try ProcessTree.living(found, skipsHidden: true))
  }

  /// As `ProcessTree.discover` finds it without a cgroup.
  public func tree(root: ProcessIdentity, session: Int32? = nil) -> ProcessTree {
    let members = ProcessTree.members(of: processes, root: root, session: session)
    return ProcessTree(processes: ProcessTree.parentsFirst(members))
  }
}
