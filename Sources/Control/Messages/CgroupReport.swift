/// The kernel's counts for a worker's cgroup. A count is nil if the kernel doesn't have it.
public struct CgroupReport: Codable, Hashable, Sendable {
  public var path: String
  /// The processor time of all processes that are or were in the cgroup.
  public var cpuSeconds: Double?
  /// The bytes that are charged to the cgroup, including file pages and the kernel's own memory.
  public var memory: Int64?
  /// The largest value that `memory` ever had.
  public var memoryPeak: Int64?
  /// The number of processes and threads.
  public var tasks: Int?
  /// The share of the last 10 s in which some of its tasks waited for memory, 0–100 %.
  public var memoryStall: Double?
  /// The share of the last 10 s in which some of its tasks waited for a processor, 0–100 %.
  public var cpuStall: Double?
  /// The share of the last 10 s in which some of its tasks waited for I/O, 0–100 %.
  public var ioStall: Double?

  public init(path: String) { self.path = path }
}
