import Lifecycle

/// The numbers of one worker for a span of time: its changes of state, its memory and its time in
/// each state. Tallies can be added up to days and weeks.
public struct WorkerTally: Codable, Hashable, Sendable {
  public var launches = 0
  public var failedLaunches = 0
  /// The worker wasn't ready within `watchdog.launch`.
  public var launchTimeouts = 0
  /// The worker ended without a request, by a signal or with another status than 0.
  public var crashes = 0
  /// The worker ended without a request, with status 0.
  public var exits = 0
  /// The worker was terminated for lack of memory.
  public var memoryTerminations = 0
  public var watchdogTerminations = 0
  /// The worker ended on request.
  public var stops = 0
  public var warnings = 0
  /// Runs in which the worker's footprint grew at each suspension.
  public var leakSuspicions = 0
  /// Trims that moved memory out of RAM.
  public var trims = 0
  /// The bytes that trims have moved out of RAM.
  public var trimmed: Int64 = 0
  public var suspensions = 0
  public var hibernations = 0
  /// Wakes from suspension.
  public var wakes = 0
  /// Wakes from hibernation.
  public var resumes = 0
  /// The time from the directive to resume until the worker ran, for hibernated workers only. It is
  /// the sum in nanoseconds.
  public var resumeNanoseconds: Int64 = 0
  /// The longest of these times, in nanoseconds.
  public var maxResumeNanoseconds: Int64 = 0
  public var resumeTimes = DurationBuckets()
  /// The bytes that hibernations, terminations for lack of memory, and requests to shed have freed.
  public var freed: Int64 = 0
  public var peakFootprint: Int64 = 0
  /// The integral over time of the footprint in RAM, in byte·seconds.
  public var byteSeconds: Double = 0
  /// The integral over time of the footprint that hibernation and trims saved, in byte·seconds.
  public var savedByteSeconds: Double = 0
  /// The time in each state, in nanoseconds.
  public var nanoseconds: [String: Int64] = [:]

  public init() {}

  /// The time in which the worker had processes.
  public var aliveSeconds: Double {
    let alive = nanoseconds.filter { $0.key != WorkerState.terminated.rawValue }
    return Double(alive.values.reduce(0, &+)) / 1e9
  }

  /// The footprint in bytes, on average over the time in which the worker had processes.
  public var averageFootprint: Int64 {
    let seconds = aliveSeconds
    return seconds > 0 ? Int64(byteSeconds / seconds) : 0
  }

  /// The time in which the worker was suspended or hibernated.
  public var asleepSeconds: Double { seconds(in: .suspended) + seconds(in: .hibernated) }

  public func seconds(in state: WorkerState) -> Double {
    Double(nanoseconds[state.rawValue] ?? 0) / 1e9
  }

  /// True if nothing happened and the worker had no processes.
  public var isEmpty: Bool {
    var counted = self
    counted.nanoseconds[WorkerState.terminated.rawValue] = nil
    return counted == WorkerTally()
  }

  /// The counts without a unit, all of which are added up.
  private static var summedCounts: [WritableKeyPath<WorkerTally, Int>] {
    [
      \.launches, \.failedLaunches, \.launchTimeouts, \.crashes, \.exits, \.memoryTerminations,
      \.watchdogTerminations, \.stops, \.warnings, \.leakSuspicions, \.trims, \.suspensions,
      \.hibernations, \.wakes, \.resumes,
    ]
  }

  public static func += (left: inout WorkerTally, right: WorkerTally) {
    for count in summedCounts { left[keyPath: count] += right[keyPath: count] }
    left.trimmed &+= right.trimmed
    left.resumeNanoseconds &+= right.resumeNanoseconds
    left.maxResumeNanoseconds = max(left.maxResumeNanoseconds, right.maxResumeNanoseconds)
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
