/// The result of the simulation of a fleet under a policy.
public struct FleetReport: Codable, Sendable, Hashable {
  /// The state of a worker when it was used.
  public enum StateAtUse: String, Codable, Sendable, CaseIterable, CodingKeyRepresentable {
    /// The worker ran.
    case hot
    case suspended, hibernated
    /// The worker had to be launched.
    case cold
  }

  public var policy: String
  /// The order in which the policy selects workers to terminate.
  public var order: [String]
  /// The number of uses by the state of their worker.
  public var found: [StateAtUse: Int] = [:]
  /// The waiting times of uses that weren't hot, from the arrival until the worker ran.
  public var wake = Latencies()
  /// The waiting times of all uses. A hot use counts as 0 ms, except that the mean has what it
  /// waited for trimmed memory.
  public var all = Latencies()
  /// The mean waiting time in milliseconds, by the state of the worker.
  public var meanWait: [StateAtUse: Double] = [:]
  /// The number of terminations by the policy under pressure, by the state before.
  public var terminated: [String: Int] = [:]
  /// The number of terminations by the policy's watchdog.
  public var watchdog = 0
  /// The number of terminations by the kernel because all memory was used.
  public var outOfMemory = 0
  /// The number of runs in which the engine suspected a leak.
  public var leaksSuspected = 0
  /// The number of these runs whose workers have no leak.
  public var leaksSuspectedWrongly = 0
  /// The number of uses in progress when their worker was terminated.
  public var lostUses = 0
  /// The number of uses that arrived while the kernel had to reclaim memory.
  public var stalledUses = 0
  /// The time in seconds that these uses waited for it.
  public var stalledSeconds = 0.0
  /// The integral of the used memory over time.
  public var memoryGigabyteHours = 0.0
  public var peakGigabytes = 0.0
  public var launches = 0
  public var suspensions = 0
  public var hibernations = 0
  /// The number of hibernations that were refused by `hibernate.disk`.
  public var hibernationsRefused = 0
  /// The size of all images that were written.
  public var writtenGigabytes = 0.0
  public var trims = 0
  /// The integral over time of the memory that was out of RAM after trims.
  public var trimmedGigabyteHours = 0.0
  /// The time in seconds for which uses waited for trimmed memory.
  public var trimWaitSeconds = 0.0
  /// The processor time in seconds for hibernating and resuming, on one core.
  public var mechanismSeconds = 0.0
  /// The number of events that the engine handled.
  public var events = 0
  /// The points of the plot: each is an upper bound in milliseconds, and the number of uses that
  /// waited longer.
  public var tail: [TailPoint] = []

  /// The number of uses by clients.
  public var uses: Int { found.values.reduce(0, +) }

  /// Quantiles of waiting times, in milliseconds.
  public struct Latencies: Codable, Sendable, Hashable {
    public var p50 = 0.0
    public var p95 = 0.0
    public var p99 = 0.0
    public var mean = 0.0
  }

  public struct TailPoint: Codable, Sendable, Hashable {
    public var milliseconds: Double
    public var uses: Int
  }

  func share(_ state: StateAtUse) -> Double {
    Double(found[state] ?? 0) / Double(max(1, uses))
  }
}

/// Collects waiting times, rounded to microseconds.
struct WaitingTimes {
  private(set) var all: [UInt32] = []

  mutating func add(_ nanoseconds: Int64) {
    all.append(UInt32(clamping: nanoseconds / 1000))
  }

  /// Returns the quantiles.
  ///
  /// - Parameter zeros: the number of further uses, which didn't wait.
  func latencies(zeros: Int, sorted: [UInt32]) -> FleetReport.Latencies {
    let count = sorted.count + zeros
    guard count > 0 else { return FleetReport.Latencies() }
    func at(_ share: Double) -> Double {
      let index = min(count - 1, Int(share * Double(count))) - zeros
      return index < 0 ? 0 : Double(sorted[index]) / 1000
    }
    let sum = sorted.reduce(0.0) { $0 + Double($1) }
    return FleetReport.Latencies(
      p50: at(0.5), p95: at(0.95), p99: at(0.99), mean: sum / 1000 / Double(count))
  }

  /// Returns the points of the plot, five for each octave.
  static func tail(_ sorted: [UInt32]) -> [FleetReport.TailPoint] {
    var points: [FleetReport.TailPoint] = []
    var bound = 500.0
    var index = 0
    while bound < 100_000_000 {
      while index < sorted.count, Double(sorted[index]) <= bound { index += 1 }
      points.append(
        FleetReport.TailPoint(milliseconds: bound / 1000, uses: sorted.count - index))
      if index == sorted.count { break }
      bound *= 1.15
    }
    return points
  }
}
