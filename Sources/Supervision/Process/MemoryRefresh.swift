import Glibc
import Linux

/// Opens `/proc/PID/mem` of a worker's processes. It may be used on any thread.
public struct MemoryRefresh: Sendable {
  let root: ProcessIdentity
  let session: Int32?
  let cgroup: WorkerCgroup?

  public init(root: ProcessIdentity, session: Int32?, cgroup: WorkerCgroup?) {
    (self.root, self.session, self.cgroup) = (root, session, cgroup)
  }

  public struct Outcome: Sendable {
    fileprivate(set) var present: Set<ProcessIdentity> = []
    fileprivate(set) var memories: [ProcessIdentity: Descriptor] = [:]
  }

  /// Finds the worker's processes and opens their memory, where that is permitted. The call may
  /// block.
  public func perform() throws(SystemCallError) -> Outcome {
    let tree = try ProcessTree.discover(root: root, session: session, cgroup: cgroup)
    var outcome = Outcome()
    for process in tree.processes.map(\.identity) {
      outcome.present.insert(process)
      // Memory that can't be opened now is opened at the next attempt.
      outcome.memories[process] = try? Self.open(process)
    }
    return outcome
  }

  /// Opens the memory of one process. Returns nil if it has ended.
  static func open(_ process: ProcessIdentity) throws(SystemCallError) -> Descriptor? {
    try Yama.check("open", process.pid, code: EACCES)
    let descriptor = try Descriptor.open("/proc/\(process.pid)/mem", O_RDWR)
    // The pid could have been used for another process before the open.
    switch process.life {
    case .lives: return descriptor
    case .hasEnded: return nil
    case .unknown(let error): throw error
    }
  }
}
