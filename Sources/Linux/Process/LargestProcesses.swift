/// A process and its memory.
public struct SizedProcess: Hashable, Sendable {
  public var pid: Int32
  /// The kernel's name of the process, 15 bytes at most.
  public var name: String
  /// Its memory in RAM in bytes. Pages that several processes share count in each of them.
  public var resident: Int64
  /// The pids of its parent, the parent of that, and so on.
  public var ancestors: [Int32] = []
  public var session: Int32 = 0
}

/// The processes of the machine with the most memory, including those of other users.
public struct LargestProcesses: Hashable, Sendable {
  /// The processes, the largest first.
  public var processes: [SizedProcess]
  /// False if the deadline passed before all processes were read.
  public var isComplete: Bool

  /// Reads one small file of each process, so it takes long if there are thousands of them.
  /// Processes that /proc hides (hidepid) and kernel threads aren't included.
  public static func read(
    upTo count: Int, until deadline: Deadline
  ) throws(SystemCallError) -> LargestProcesses {
    var stats: [Int32: ProcessStat] = [:]
    var isComplete = true
    for pid in try listNumbers("/proc") {
      if deadline.hasPassed {
        isComplete = false
        break
      }
      // An error means that the process has ended, or that /proc hides it.
      if let stat = try? ProcessStat.read(pid) { stats[pid] = stat }
    }
    return LargestProcesses(
      processes: largest(count, of: stats), isComplete: isComplete)
  }

  static func largest(_ count: Int, of stats: [Int32: ProcessStat]) -> [SizedProcess] {
    let order = stats.values.filter { $0.residentPages > 0 }
      .sorted { ($0.residentPages, $1.pid) > ($1.residentPages, $0.pid) }
    return order.prefix(count).map { stat in
      SizedProcess(
        pid: stat.pid, name: stat.name,
        resident: Int64(clamping: stat.residentPages.multipliedReportingOverflow(by: pageSize).0),
        ancestors: ancestors(of: stat, in: stats), session: stat.session)
    }
  }

  private static func ancestors(
    of stat: ProcessStat, in stats: [Int32: ProcessStat]
  ) -> [Int32] {
    var ancestors: [Int32] = []
    var parent = stat.parent
    // If parents changed while they were read, they can form a ring.
    while parent > 0, parent != stat.pid, !ancestors.contains(parent) {
      ancestors.append(parent)
      parent = stats[parent]?.parent ?? 0
    }
    return ancestors
  }
}

/// Finds the worker to which a process belongs.
public struct ProcessOwners: Sendable {
  /// A worker's first process, and its session and cgroup if it has them.
  public struct Root: Sendable {
    public var worker: String
    public var pid: Int32
    public var session: Int32?
    public var cgroup: String?

    public init(worker: String, pid: Int32, session: Int32? = nil, cgroup: String? = nil) {
      self.worker = worker
      self.pid = pid
      self.session = session
      self.cgroup = cgroup
    }
  }

  private let byPid: [Int32: String]
  private let bySession: [Int32: String]
  private let groups: [(path: String, worker: String)]

  public init(_ roots: [Root]) {
    byPid = Dictionary(roots.map { ($0.pid, $0.worker) }) { first, _ in first }
    bySession = Dictionary(
      roots.compactMap { root in root.session.flatMap { $0 > 0 ? ($0, root.worker) : nil } }
    ) { first, _ in first }
    groups = roots.compactMap { root in root.cgroup.map { ($0, root.worker) } }
  }

  /// Returns the nearest worker among the process and its ancestors, otherwise the worker of its
  /// session or cgroup. It returns `nil` if the process belongs to no worker.
  ///
  /// - Parameter cgroup: reads the path of a process's cgroup.
  public func worker(
    of process: SizedProcess, cgroup: (Int32) -> String? = ProcessDetails.cgroup
  ) -> String? {
    for pid in [process.pid] + process.ancestors {
      if let worker = byPid[pid] { return worker }
    }
    if let worker = bySession[process.session] { return worker }
    guard !groups.isEmpty, let path = cgroup(process.pid) else { return nil }
    // The path of a worker's group begins with the mount. The process is in it, or in a group below
    // it.
    var above = path[...]
    while let end = above.lastIndex(of: "/"), above.count > 1 {
      if let group = groups.first(where: { $0.path.hasSuffix(above) }) { return group.worker }
      above = above[..<end]
    }
    return nil
  }
}
