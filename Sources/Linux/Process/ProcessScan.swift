import Glibc

/// One list of all processes of the machine, in which the trees of many workers can be found.
/// Reading all of /proc for each of 100 workers would take half a second.
public struct ProcessScan: Sendable {
  private let processes: [ProcessStat]

  package init(processes: [ProcessStat]) { self.processes = processes }

  public static func read() throws(SystemCallError) -> ProcessScan {
    ProcessScan(processes: try ProcessTree.living(listNumbers("/proc"), skipsHidden: true))
  }

  /// Lists this process's own descendants only, which is cheap even if there are many other
  /// processes. Orphaned descendants are found only if this process is a subreaper
  /// (`clinux_become_subreaper`).
  public static func readDescendants() throws(SystemCallError) -> ProcessScan {
    var descendants: [Int32] = []
    var parents = [getpid()]
    while let parent = parents.popLast() {
      let children = try listChildren(of: parent)
      descendants += children
      parents += children
    }
    return ProcessScan(processes: try ProcessTree.living(descendants, skipsHidden: true))
  }

  /// Returns the tree that `ProcessTree.discover` finds without a cgroup.
  public func tree(root: ProcessIdentity, session: Int32? = nil) -> ProcessTree {
    let members = ProcessTree.members(
      of: processes, root: root, session: session, wrapper: WrapperTree.current)
    return ProcessTree(processes: ProcessTree.parentsFirst(members))
  }

  /// Returns the processes of the tree with their present stats. Those that have ended since are
  /// left out, and newer ones aren't found.
  public func currentTree(root: ProcessIdentity, session: Int32? = nil) -> ProcessTree {
    ProcessTree(
      processes: tree(root: root, session: session).processes.compactMap { old in
        // If it can't be read, it has ended, or isn't measured this time.
        guard let stat = try? ProcessStat.read(old.pid), stat.startTime == old.startTime,
          !stat.isEnded
        else { return nil }
        return stat
      })
  }

  public func contains(_ process: ProcessIdentity) -> Bool {
    processes.contains { $0.identity == process }
  }
}

/// Lists the children of all threads of a process. The kernel lists a child with the thread that
/// forked it, and an orphan that a subreaper gets with the subreaper's first thread. The result may
/// be empty if a resource is short.
public func children(of pid: Int32) -> [Int32] {
  // It is meant for callers that repeat the call, so an error doesn't matter.
  (try? listChildren(of: pid)) ?? []
}

/// Lists the children of all threads of a process.
///
/// - Throws: an error if a resource is short: a child that isn't found would be missing from a
///   worker.
private func listChildren(of pid: Int32) throws(SystemCallError) -> [Int32] {
  var children: [Int32] = []
  do throws(SystemCallError) {
    for thread in try threads(of: pid) {
      do throws(SystemCallError) {
        let list = try readFile("/proc/\(pid)/task/\(thread)/children")
        children += list.words().compactMap { $0.number() }
      } catch {
        // The thread has ended. Its children are listed with another thread.
        if error.isShortage { throw error }
      }
    }
  } catch {
    // A process that has ended has no children. A kernel without CONFIG_PROC_CHILDREN lists none.
    if error.isShortage { throw error }
  }
  return children
}
