/// The result of a fleet under a policy.
public struct FleetReport: Codable, Sendable, Hashable {
  /// The state in which a use found its worker.
  public enum Found: String, Codable, Sendable, CaseIterable, CodingKeyRepresentable {
    /// The worker ran.
    case hot
    case suspended, hibernated
    /// The worker had to be launched.
    case cold
  }

  public var policy: String
  public var order: [String]
  /// The number of uses by the state that they found.
  public var found: [Found: Int] = [:]
  /// The waits of uses that weren't hot, from the arrival until the worker ran.
  public var wake = Latencies()
  /// The waits of all uses; hot ones count as 0 ms.
  public var all = Latencies()
  /// By the state that uses found: their mean wait in milliseconds.
  public var meanWait: [Found: Double] = [:]
  /// Terminations by the policy under pressure, by the state before.
  public var terminated: [String: Int] = [:]
  /// Terminations by the policy's watchdog, and by the kernel because all memory was used.
  public var watchdog = 0
  public var outOfMemory = 0
  /// Runs of workers of which the engine suspected a leak, and those among them whose workers have none.
  public var leaksSuspected = 0
  public var leaksSuspectedWrongly = 0
  /// Uses that were under way when their worker was terminated.
  public var lostUses = 0
  /// Uses that came while the kernel had to reclaim, and how long they waited for that.
  public var stalledUses = 0
  public var stalledSeconds = 0.0
  public var memoryGigabyteHours = 0.0
  public var peakGigabytes = 0.0
  public var launches = 0
  public var suspensions = 0
  public var hibernations = 0
  public var hibernationsRefused = 0
  public var writtenGigabytes = 0.0
  /// Seconds of one core for hibernating and resuming.
  public var mechanismSeconds = 0.0
  public var events = 0
  /// Upper bounds in milliseconds, and how many uses waited longer than that; for the plot.
  public var tail: [TailPoint] = []

  public var uses: Int { found.values.reduce(0, +) }

  /// Milliseconds.
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

  func share(_ found: Found) -> Double {
    Double(self.found[found] ?? 0) / Double(max(1, uses))
  }
}

/// Waiting times, exactly, in microseconds.
struct WaitingTimes {
  private(set) var all: [UInt32] = []

  mutating func add(_ nanoseconds: Int64) {
    all.append(UInt32(clamping: nanoseconds / 1000))
  }

  /// - Parameter zeros: the number of further uses that didn't wait.
  func latencies(zeros: Int, sorted: [UInt32]) -> FleetReport.Latencies {
    let count = sorted.count + zeros
    guard count > 0 else { return FleetReport.Latencies() }
    func at(_ share: Double) -> Double {
      let place = min(count - 1, Int(share * Double(count))) - zeros
      return place < 0 ? 0 : Double(sorted[place]) / 1000
    }
    let sum = sorted.reduce(0.0) { $0 + Double($1) }
    return FleetReport.Latencies(
      p50: at(0.5), p95: at(0.95), p99: at(0.99), mean: sum / 1000 / Double(count))
  }

  /// One step for each fifth of an octave.
  static func tail(_ sorted: [UInt32]) -> [FleetReport.TailPoint] {
    var points: [FleetReport.TailPoint] = []
    var bound = 500.0
    var place = 0
    while bound < 100_000_000 {
      while place < sorted.count, Double(sorted[place]) <= bound { place += 1 }
      points.append(
        FleetReport.TailPoint(milliseconds: bound / 1000, uses: sorted.count - place))
      if place == sorted.count { break }
      bound *= 1.15
    }
    return points
  }
}
