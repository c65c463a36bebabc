/// `limits:`. The most that a worker may use.
public struct ResourceLimits: Hashable, Sendable {
  /// The limits of setrlimit(2) by resource. A resource without an entry is inherited.
  public var resources: [Resource: Limit] = [:]
  /// The limit of the whole process tree, by its cgroup (`memory.max`). `nil`: no limit.
  public var memory: ByteCount?
  /// What happens to the worker because of its measured footprint. `nil`: nothing.
  public var footprint: FootprintLimits?
  /// The worker's `oom_score_adj` (proc(5)), within `oomScores`. `nil`: the default.
  public var oomScore: Int?

  /// The range that the kernel accepts.
  public static let oomScores = -1000...1000

  public init() {}

  /// A limit in the units of setrlimit(2): bytes, seconds of processor time, or a count. `nil`:
  /// unlimited.
  public struct Limit: Hashable, Sendable {
    public var soft: UInt64?
    public var hard: UInt64?

    public init(soft: UInt64?, hard: UInt64?) {
      self.soft = soft
      self.hard = hard
    }
  }

  /// The resources of setrlimit(2), by their names without `RLIMIT_`.
  public enum Resource: String, Hashable, Sendable, CaseIterable {
    case nofile, nproc, core, memlock, stack, data, fsize, cpu, sigpending, msgqueue
    case addressSpace = "as"

    public enum Unit: Hashable, Sendable { case count, bytes, seconds }
    public var unit: Unit {
      switch self {
      case .nofile, .nproc, .sigpending: .count
      case .core, .memlock, .stack, .data, .fsize, .addressSpace, .msgqueue: .bytes
      case .cpu: .seconds
      }
    }
  }
}
