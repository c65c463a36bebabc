import CLinux
import Glibc
import Synchronization

/// The rules for which processes belong to the one worker of this process, if this process is a
/// wrapper (`dormouse wrap`).
///
/// A wrapper that the worker starts has a worker of its own, which sleeps by itself. Neither
/// belongs to the outer worker. So a host that is always busy (a Jupyter server) doesn't keep its
/// wrapped helpers awake, and a sleeping host (an agent) needs none of theirs.
public struct WrapperTree: Hashable, Sendable {
  /// The process name (comm) by which a wrapper recognizes another wrapper.
  public static let processName = "dormouse-wrap"

  var wrapper: Int32
  /// The children of the wrapper that don't belong to the worker; nil: orphans are found by the
  /// worker's session.
  var others: Set<Int32>?

  private static let shared = Mutex<WrapperTree?>(nil)

  /// The tree of this process; nil if it isn't a wrapper.
  static var current: WrapperTree? { shared.withLock { $0 } }

  /// Makes this process a wrapper, and changes its name accordingly.
  public static func beginInThisProcess() {
    clinux_set_thread_name(processName)
    let tree = WrapperTree(wrapper: getpid())
    shared.withLock { $0 = tree }
  }

  /// Counts each child of this process that is no older than a worker's root as the worker's, from
  /// now on. The worker has no session of its own (a terminal's program), and nothing else would
  /// show that.
  ///
  /// - Parameter others: children that don't belong to the worker.
  public static func claimOrphans(except others: Set<Int32>) {
    shared.withLock { $0?.others = others }
  }

  /// Excludes a child from the worker until `forget`: a command that runs beside the worker.
  public static func exclude(_ child: Int32) {
    shared.withLock { _ = $0?.others?.insert(child) }
  }

  /// Ends `exclude` for a child that has been reaped, or that has been killed with what it has
  /// started. An orphan may get its pid soon.
  public static func forget(_ child: Int32) {
    shared.withLock { _ = $0?.others?.remove(child) }
  }

  /// Whether a process is an orphan of the worker that this process got as a subreaper. This
  /// process's own forks, which only try what the kernel can do, may have its name, so they are
  /// excluded by it.
  func claims(_ stat: ProcessStat) -> Bool {
    guard let others, stat.parent == wrapper else { return false }
    return !others.contains(stat.pid) && !stat.name.hasPrefix("dormouse")
  }

  /// Returns the processes without the wrappers that the worker has started, and without their
  /// descendants.
  func withoutInner(_ processes: [ProcessStat], root: ProcessIdentity) -> [ProcessStat] {
    var inner = Set(
      processes.filter {
        $0.name == Self.processName && $0.pid != wrapper && $0.identity != root
      }.map(\.pid))
    if inner.isEmpty { return processes }
    var grew = true
    while grew {
      grew = false
      for stat in processes where inner.contains(stat.parent) && stat.pid != wrapper {
        if stat.identity != root, inner.insert(stat.pid).inserted { grew = true }
      }
    }
    return processes.filter { !inner.contains($0.pid) }
  }
}

/// The wrapper around the program that has started this process.
public enum OuterWrapper {
  /// Moves this process to the group of the outer wrapper itself, so that the outer worker's sleep
  /// doesn't stop it. (A wrapper's worker has a cgroup, in which this process was started.)
  ///
  /// If that fails, the outer worker sleeps together with this process, but isn't hibernated.
  ///
  /// - Returns: the directory of the group that the process has left; nil if it stays. A program
  ///   that is executed here without a wrapper belongs there (`enter`).
  public static func leaveItsGroup() -> String? {
    // If /proc can't be read, nothing is done.
    guard let outer = try? pid(), let workerGroup = try? group(of: getpid()),
      isWorkerGroup(workerGroup),
      // Without the outer group or the mounts, this process stays in its group.
      let target = try? group(of: outer), target != workerGroup, let mounts = try? Mount.all()
    else { return nil }
    for mount in mounts where mount.type == "cgroup2" {
      guard let directory = CgroupRoot.directory(of: target, in: mount) else { continue }
      // If the move isn't permitted, the process stays.
      if (try? writeControl("\(directory)/cgroup.procs", "\(getpid())")) != nil {
        return CgroupRoot.directory(of: workerGroup, in: mount)
      }
    }
    return nil
  }

  /// Moves this process into a group. A failure is ignored.
  public static func enter(_ directory: String) {
    // If the outer worker has ended, its group may be removed.
    _ = try? writeControl("\(directory)/cgroup.procs", "\(getpid())")
  }

  private static func group(of pid: Int32) throws(SystemCallError) -> String? {
    CgroupRoot.groupPath(parsing: try readText("/proc/\(pid)/cgroup"))
  }

  /// The nearest wrapper among the ancestors; nil if there is none, if a daemon is nearer, or if a
  /// process between them has lost its parent.
  private static func pid() throws(SystemCallError) -> Int32? {
    var pid = getppid()
    while pid > 1 {
      let stat = try ProcessStat.read(pid)
      if stat.name == WrapperTree.processName { return pid }
      if stat.name == "dormouse" { return nil }
      pid = stat.parent
    }
    return nil
  }

  /// Whether the group is `…/dormouse-NAME/worker-NAME`, or one that the worker has made in it.
  public static func isWorkerGroup(_ group: String) -> Bool {
    let names = group.split(separator: "/")
    return zip(names, names.dropFirst()).contains {
      $0.hasPrefix("dormouse-") && $1.hasPrefix("worker-")
    }
  }
}
