import Glibc

/// One list of all processes of the machine, in which the trees of many workers can be found: reading all of
/// /proc for each of 100 workers takes half a second.
public struct ProcessScan: Sendable {
  private let processes: [ProcessStat]

  package init(processes: [ProcessStat]) { self.processes = processes }

  public static func read() throws(SystemCallError) -> ProcessScan {
    ProcessScan(processes: try ProcessTree.living(listNumbers("/proc"), skipsHidden: true))
  }

  /// The same for this process's own descendants only, which is cheap even if there are many other processes.
  /// It needs a parent that gets its orphaned descendants (`clinux_become_subreaper`).
  public static func readDescendants() throws(SystemCallError) -> ProcessScan {
    var found: [Int32] = []
    var parents = [getpid()]
    while let parent = parents.popLast() {
      let children = try listChildren(of: parent)
      found += children
      parents += children
    }
    return ProcessScan(processes: try ProcessTree.living(found, skipsHidden: true))
  }

  /// The same tree that `ProcessTree.discover` finds without a cgroup.
  public func tree(root: ProcessIdentity, session: Int32? = nil) -> ProcessTree {
    let members = ProcessTree.members(
      of: processes, root: root, session: session, wrapper: WrapperTree.current)
    return ProcessTree(processes: ProcessTree.parentsFirst(members))
  }

  /// The same processes as they are now. Those that have ended since are left out, and newer ones aren't found.
  public func currentTree(root: ProcessIdentity, session: Int32? = nil) -> ProcessTree {
    ProcessTree(
      processes: tree(root: root, session: session).processes.compactMap { old in
        // It has ended, or isn't measured this time.
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

/// The children of all threads of a process: the kernel lists a child with the thread that forked it, and an
/// orphan that a subreaper gets with the subreaper's first thread.
public func children(of pid: Int32) -> [Int32] {
  // For looks that are repeated.
  (try? listChildren(of: pid)) ?? []
}

/// The same where a child that isn't found would be missing from a worker.
private func listChildren(of pid: Int32) throws(SystemCallError) -> [Int32] {
  var found: [Int32] = []
  do throws(SystemCallError) {
    for thread in try threads(of: pid) {
      do throws(SystemCallError) {
        let list = try readNamedFile("/proc/\(pid)/task/\(thread)/children")
        found += list.words().compactMap { $0.number() }
      } catch {
        // It has passed its children on to another thread.
        if error.isShortage { throw error }
      }
    }
  } catch {
    // A process that has ended has none; a kernel without CONFIG_PROC_CHILDREN lists none.
    if error.isShortage { throw error }
  }
  return found
}
