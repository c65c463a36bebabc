import Glibc

/// One look at all processes of the machine, in which the trees of many workers can be found: to read
/// all of /proc for each of a hundred workers takes half a second.
public struct ProcessScan: Sendable {
  private let processes: [ProcessStat]

  public static func read() throws(SystemCallError) -> ProcessScan {
    ProcessScan(processes: try ProcessTree.living(listNumbers("/proc"), skipsHidden: true))
  }

  /// The same of our own descendants only, which is cheap however many others there are. For a
  /// parent that its descendants can't lose (`clinux_become_subreaper`).
  public static func readDescendants() throws(SystemCallError) -> ProcessScan {
    var found: [Int32] = []
    var parents = [getpid()]
    while let parent = parents.popLast() {
      let children = Linux.children(of: parent)
      found += children
      parents += children
    }
    return ProcessScan(processes: try ProcessTree.living(found, skipsHidden: true))
  }

  /// As `ProcessTree.discover` finds it without a cgroup.
  public func tree(root: ProcessIdentity, session: Int32? = nil) -> ProcessTree {
    let members = ProcessTree.members(of: processes, root: root, session: session)
    return ProcessTree(processes: ProcessTree.parentsFirst(members))
  }
}

/// The children of all threads of a process: the kernel lists a child with the thread that forked it, and an
/// orphan that a subreaper gets with its first one.
public func children(of pid: Int32) -> [Int32] {
  // One that has ended has none, and a thread that has ended meanwhile has passed its children on to another.
  ((try? threads(of: pid)) ?? []).flatMap { thread -> [Int32] in
    let list = (try? readNamedFile("/proc/\(pid)/task/\(thread)/children")) ?? []
    return list.words().compactMap { $0.number() }
  }
}
