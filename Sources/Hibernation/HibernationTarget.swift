import Glibc
import Linux

/// One worker, as the hibernator needs it.
public struct HibernationTarget: Sendable {
  public var name: String
  public var root: ProcessIdentity
  /// The worker's own session, where it was started in one.
  public var session: Int32?
  /// Its own cgroup: it rests frozen. Without one it rests stopped *and* traced, because a foreign
  /// SIGCONT would otherwise let it run on memory that isn't there.
  public var cgroup: WorkerCgroup?
  /// Descriptors of /proc/PID/mem that have been held since launch.
  public var memories: [Int32: Descriptor]

  public init(
    name: String, root: ProcessIdentity, session: Int32? = nil, cgroup: WorkerCgroup? = nil,
    memories: [Int32: Descriptor] = [:]
  ) {
    self.name = name
    self.root = root
    self.session = session
    self.cgroup = cgroup
    self.memories = memories
  }

  /// Time for a freeze, a thaw or a stop to take effect.
  static let patience: Duration = .seconds(5)

  func discover() throws -> ProcessTree {
    try ProcessTree.discover(root: root, session: session, cgroup: cgroup)
  }

  func memory(of pid: Int32) throws(SystemCallError) -> ProcessMemory {
    if let held = memories[pid] { return ProcessMemory(pid: pid, descriptor: held) }
    return try ProcessMemory(pid: pid)
  }

  /// SIGSTOP to all, and all threads stopped. A frozen worker is stopped first and thawed then, so
  /// that it runs no instruction in between.
  func stop() throws -> ProcessTree {
    if let cgroup, try cgroup.isFrozen {
      try discover().signalAll(SIGSTOP)
      try cgroup.thaw(until: Deadline(in: Self.patience))
    }
    return try ProcessTree.stopAll(
      root: root, session: session, cgroup: cgroup, until: Deadline(in: Self.patience))
  }

  /// Lets a stopped, traced or frozen worker run.
  public func wake() throws {
    try discover().continueAll()
    try cgroup?.thaw(until: Deadline(in: Self.patience))
  }
}
