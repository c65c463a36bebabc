import CLinux
import Glibc
import Synchronization

/// What belongs to the one worker of this process, if this process is a wrapper (`dormouse wrap`).
///
/// A wrapper that the worker starts has a worker of its own, which sleeps by itself: neither belongs to the outer
/// worker. A host that is always busy (a Jupyter server) doesn't keep its wrapped helpers awake, and a sleeping host
/// (an agent) needs none of theirs.
public struct WrapperTree: Hashable, Sendable {
  /// By this name of the process (comm) a wrapper knows another.
  public static let processName = "dormouse-wrap"

  var wrapper: Int32
  /// Children of the wrapper that aren't the worker's. nil: orphans are found by the worker's session.
  var others: Set<Int32>?

  private static let shared = Mutex<WrapperTree?>(nil)

  /// nil: this process isn't a wrapper.
  static var current: WrapperTree? { shared.withLock { $0 } }

  /// This process is a wrapper from now on, and its name shows that.
  public static func beginInThisProcess() {
    clinux_set_thread_name(processName)
    let own = WrapperTree(wrapper: getpid())
    shared.withLock { $0 = own }
  }

  /// From now on each child of this process that is no older than a worker's root belongs to the worker: the worker
  /// has no session of its own (a terminal's program), and nothing else would show that.
  ///
  /// - Parameter others: children for which that isn't true.
  public static func takeOrphans(except others: Set<Int32>) {
    shared.withLock { $0?.others = others }
  }

  /// A child that isn't the worker's, until `forget`: a command that runs beside the worker.
  public static func leaveOut(_ child: Int32) {
    shared.withLock { _ = $0?.others?.insert(child) }
  }

  /// It has been reaped, or is being killed; its number may be an orphan's soon.
  public static func forget(_ child: Int32) {
    shared.withLock { _ = $0?.others?.remove(child) }
  }

  /// An orphan that this process got as a subreaper. This process's forks that only try what the kernel can have its
  /// name.
  func takes(_ stat: ProcessStat) -> Bool {
    guard let others, stat.parent == wrapper else { return false }
    return !others.contains(stat.pid) && !stat.name.hasPrefix("dormouse")
  }

  /// Without the wrappers that the worker has started, and their descendants.
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
  /// A wrapper's worker has a cgroup, in which this process was born. Moves this process to the group of the outer
  /// wrapper itself, so that the outer worker's sleep doesn't stop it.
  ///
  /// If that fails, the outer worker sleeps together with this process, but isn't hibernated.
  ///
  /// Returns the group's directory, if the process has left it: a program that is executed here without a wrapper
  /// belongs there (`enter`).
  public static func leaveItsGroup() -> String? {
    // Without /proc nothing is found, and nothing is done.
    guard let outer = try? pid(), let own = try? group(of: getpid()), isWorkers(own),
      let target = try? group(of: outer), target != own, let mounts = try? Mount.all()
    else { return nil }
    for mount in mounts where mount.type == "cgroup2" {
      guard let directory = CgroupRoot.directory(of: target, in: mount) else { continue }
      // Without the permission it stays.
      if (try? writeControl("\(directory)/cgroup.procs", "\(getpid())")) != nil {
        return CgroupRoot.directory(of: own, in: mount)
      }
    }
    return nil
  }

  /// Moves this process into a group.
  public static func enter(_ directory: String) {
    // Without the outer worker, which may have ended, its group isn't there.
    _ = try? writeControl("\(directory)/cgroup.procs", "\(getpid())")
  }

  private static func group(of pid: Int32) throws(SystemCallError) -> String? {
    CgroupRoot.ownPath(parsing: try readText("/proc/\(pid)/cgroup"))
  }

  /// The nearest one among the ancestors. nil: there is none, a daemon is nearer, or its descendant has lost its
  /// parent.
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

  /// `…/dormouse-NAME/worker-NAME`, or a group that the worker has made in it.
  static func isWorkers(_ group: String) -> Bool {
    let names = group.split(separator: "/")
    return zip(names, names.dropFirst()).contains {
      $0.hasPrefix("dormouse-") && $1.hasPrefix("worker-")
    }
  }
}
