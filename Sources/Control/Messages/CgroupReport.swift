/// What the kernel counts of a worker's cgroup, each where it does.
public struct CgroupReport: Codable, Hashable, Sendable {
  public var path: String
  /// Processor time of all processes that are or were in it.
  public var cpuSeconds: Double?
  /// Bytes charged to it, file pages and the kernel's own included; and the most that ever were.
  public var memory: Int64?
  public var memoryPeak: Int64?
  /// Processes and threads.
  public var tasks: Int?
  /// Share of the last 10 s in which some of its tasks waited for it, 0–100 %.
  public var memoryStall: Double?
  public var cpuStall: Double?
  public var ioStall: Double?

  public init(path: String) { self.path = path }
}
