import Lifecycle
import Policy

/// What one worker did, and cost, in a span of time. Sums of these make days and weeks.
public struct WorkerTally: Codable, Hashable, Sendable {
  public var launches = 0
  public var failedLaunches = 0
  /// The worker wasn't ready within `watchdog.launch`.
  public var launchTimeouts = 0
  /// The worker ended without a request, by a signal or with another status than 0.
  public var crashes = 0
  /// The worker ended without a request, with status 0.
  public var exits = 0
  /// The worker was terminated for memory.
  public var memoryTerminations = 0
  public var watchdogTerminations = 0
  /// The worker ended on request.
  public var stops = 0
  public var warnings = 0
  /// Runs in which the worker's footprint grew at each suspension.
  public var leakSuspicions = 0
  public var suspensions = 0
  public var hibernations = 0
  /// Wakes from mere suspension, and from hibernation.
  public var wakes = 0
  public var resumes = 0
  /// From the directive to resume until the worker ran, hibernated ones only: nanoseconds, all and the
  /// longest.
  public var resumeNanoseconds: Int64 = 0
  public var maxResumeNanoseconds: Int64 = 0
  public var resumeTimes = DurationBuckets()
  /// Bytes that hibernation, terminations for memory and requests to shed have freed.
  public var freed: Int64 = 0
  public var peakFootprint: Int64 = 0
  /// Footprint over time: byte·seconds.
  public var byteSeconds: Double = 0
  /// Footprint that hibernation saved, over time: byte·seconds.
  public var savedByteSeconds: Double = 0
  /// By state, in nanoseconds.
  public var nanoseconds: [String: Int64] = [:]

  public init() {}

  /// The time with its processes alive.
  public var aliveSeconds: Double {
    let alive = nanoseconds.filter { $0.key != WorkerState.terminated.rawValue }
    return Double(alive.values.reduce(0, &+)) / 1e9
  }

  /// Bytes, on average over the time that the worker was alive.
  public var averageFootprint: Int64 {
    let seconds = aliveSeconds
    return seconds > 0 ? Int64(byteSeconds / seconds) : 0
  }

  /// The time suspended or hibernated.
  public var asleepSeconds: Double { seconds(in: .suspended) + seconds(in: .hibernated) }

  public func seconds(in state: WorkerState) -> Double {
    Double(nanoseconds[state.rawValue] ?? 0) / 1e9
  }

  /// Nothing happened, and the worker had no processes.
  public var isEmpty: Bool {
    var rest = self
    rest.nanoseconds[WorkerState.terminated.rawValue] = nil
    return rest == WorkerTally()
  }

  public static func += (left: inout WorkerTally, right: WorkerTally) {
    left.launches += right.launches
    left.failedLaunches += right.failedLaunches
    left.launchTimeouts += right.launchTimeouts
    left.crashes += right.crashes
    left.exits += right.exits
    left.memoryTerminations += right.memoryTerminations
    left.watchdogTerminations += right.watchdogTerminations
    left.stops += right.stops
    left.warnings += right.warnings
    left.leakSuspicions += right.leakSuspicions
    left.suspensions += right.suspensions
    left.hibernations += right.hibernations
    left.wakes += right.wakes
    left.resumes += right.resumes
    left.resumeNanoseconds &+= right.resumeNanoseconds
    left.maxResumeNanoseconds = max(
      left.maxResumeNanoseconds, right.maxResumeNanoseconds)
    left.resumeTimes += right.resumeTimes
    left.savedByteSeconds += right.savedByteSeconds
    left.freed &+= right.freed
    left.peakFootprint = max(left.peakFootprint, right.peakFootprint)
    left.byteSeconds += right.byteSeconds
    left.nanoseconds.merge(right.nanoseconds) { $0 &+ $1 }
  }
}

extension WorkerTally {
  public static func + (left: WorkerTally, right: WorkerTally) -> WorkerTally {
    var sum = left
    sum += right
    return sum
  }
}
