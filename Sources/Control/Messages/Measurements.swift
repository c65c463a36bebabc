// The measurements that `status` reports for `dormouse metrics` and other programs that draw
// curves: counters, which only grow, and values that no table shows.

/// Counters of a worker since the daemon started, or since it knows the worker. They only grow.
public struct WorkerCounters: Codable, Hashable, Sendable {
  public var launches = 0
  public var failedLaunches = 0
  public var suspensions = 0
  public var hibernations = 0
  /// The number of wakes from suspension without hibernation.
  public var wakes = 0
  /// The number of wakes from hibernation.
  public var resumes = 0
  /// The total time of all resumes from hibernation, from the decision until the worker ran.
  public var resumeSeconds = 0.0
  /// The number of trims that moved memory out of RAM; nil in a report of an earlier daemon.
  public var trims: Int?
  /// The bytes that trims moved out of RAM; nil in a report of an earlier daemon.
  public var trimmed: Int64?
  /// The number of requests to free memory that it got under pressure or by request of an operator.
  public var warnings = 0
  /// The bytes that hibernation, termination for lack of memory and such requests have freed.
  public var freed: Int64 = 0
  /// The bytes that were written to its images.
  public var written: Int64 = 0
  /// The integral of its footprint in RAM over time, in byte·seconds.
  public var footprintByteSeconds = 0.0
  /// The ends of its runs, by reason.
  public var ends = Ends()
  /// The time in each state that it has been in, by name.
  public var states: [StateTime] = []

  public struct Ends: Codable, Hashable, Sendable {
    /// It was terminated for lack of memory.
    public var memory = 0
    /// It was terminated because it missed a deadline.
    public var watchdog = 0
    /// It was terminated by request.
    public var requested = 0
    /// It exited by itself, with status 0.
    public var completed = 0
    /// It exited by itself with another status, was ended by a signal, or was killed by the kernel.
    public var crashed = 0
  }

  public struct StateTime: Codable, Hashable, Sendable {
    public var state: String
    public var seconds: Double

    public init(state: String, seconds: Double) {
      self.state = state
      self.seconds = seconds
    }
  }

  public init() {}
}

/// Measurements of the daemon itself and of the machine. Sizes are in bytes.
public struct DaemonMeasurements: Codable, Hashable, Sendable {
  /// The time since the daemon's start.
  public var upSeconds: Double
  /// The processor time of the daemon's process.
  public var cpuSeconds: Double?
  /// The bytes of the daemon's process that are in RAM.
  public var resident: Int64?
  /// The share of the time in which some tasks waited for memory, 0–100 %; nil without PSI.
  public var someStall: Double?
  /// The share of the time in which all tasks waited for memory, 0–100 %; nil without PSI.
  public var fullStall: Double?
  public var swapFree: Int64?
  public var imageDisk: ImageDisk?
  public var wakeTimes: [WakeTimes] = []
  /// The number of bursts of terminations for lack of memory.
  public var jetsamReports = 0
  public var hooks: Hooks?

  public init(upSeconds: Double) { self.upSeconds = upSeconds }

  /// The file system of the images. Sizes are in bytes.
  public struct ImageDisk: Codable, Hashable, Sendable {
    /// The size of all images together.
    public var images: Int64
    /// The maximum size of all images together.
    public var budget: Int64
    /// The free space of the file system.
    public var free: Int64
    public var total: Int64
    /// The space of the file system that must stay free.
    public var least: Int64

    public init(images: Int64, budget: Int64, free: Int64, total: Int64, least: Int64) {
      self.images = images
      self.budget = budget
      self.free = free
      self.total = total
      self.least = least
    }
  }

  /// The duration of wakes, from the decision until the worker ran, as a histogram.
  public struct WakeTimes: Codable, Hashable, Sendable {
    /// The state from which the workers were woken: `suspended` or `hibernated`.
    public var from: String
    /// The total time of all these wakes.
    public var seconds: Double
    /// The upper bounds of the buckets in seconds, rising.
    public var bounds: [Double]
    /// The number of wakes in each bucket, not cumulated. The last number is that above all bounds.
    public var counts: [Int]

    public init(from: String, seconds: Double, bounds: [Double], counts: [Int]) {
      self.from = from
      self.seconds = seconds
      self.bounds = bounds
      self.counts = counts
    }
  }

  /// The outcomes of the commands of `on:`.
  public struct Hooks: Codable, Hashable, Sendable {
    public var succeeded = 0
    public var failed = 0
    public var timedOut = 0
    /// The number of events for which no command was started, because too many waited.
    public var dropped = 0

    public init() {}
  }
}
