// What `status` reports for `dormouse metrics` and other programs that draw curves: counters, which only grow, and
// measurements that no table shows.

/// What happened to a worker since the daemon started, or since it knows the worker. All of them only grow.
public struct WorkerCounters: Codable, Hashable, Sendable {
  public var launches = 0
  public var failedLaunches = 0
  public var suspensions = 0
  public var hibernations = 0
  /// Wakes from mere suspension, and from hibernation.
  public var wakes = 0
  public var resumes = 0
  /// The time of all resumes from hibernation together, from the order until the worker ran.
  public var resumeSeconds = 0.0
  /// Requests to free memory that it got under pressure or on request.
  public var warnings = 0
  /// Bytes that hibernation, termination for memory and such requests have freed.
  public var freed: Int64 = 0
  /// Bytes that were written to its images.
  public var written: Int64 = 0
  /// Its footprint over time: byte·seconds.
  public var footprintByteSeconds = 0.0
  /// How its runs ended.
  public var ends = Ends()
  /// The time in each state that it has been in, by name.
  public var states: [StateTime] = []

  public struct Ends: Codable, Hashable, Sendable {
    /// Terminated for lack of memory.
    public var memory = 0
    /// Terminated because it missed a deadline.
    public var watchdog = 0
    /// On request.
    public var requested = 0
    /// By itself, with status 0.
    public var completed = 0
    /// By itself, with another status or by a signal, or killed by the kernel.
    public var crashed = 0

    public init() {}
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

/// What the daemon measures of itself and of the machine.
public struct DaemonMeasurements: Codable, Hashable, Sendable {
  /// Since the daemon's start.
  public var upSeconds: Double
  /// Processor time, and bytes in RAM, of the daemon's process.
  public var cpuSeconds: Double?
  public var resident: Int64?
  /// Share of the time in which some tasks, or all, waited for memory, 0–100 %; nil without PSI.
  public var someStall: Double?
  public var fullStall: Double?
  public var swapFree: Int64?
  public var imageDisk: ImageDisk?
  public var wakeTimes: [WakeTimes] = []
  /// Bursts of terminations for memory.
  public var jetsamReports = 0
  public var hooks: Hooks?

  public init(upSeconds: Double) { self.upSeconds = upSeconds }

  /// The disk of the images, in bytes.
  public struct ImageDisk: Codable, Hashable, Sendable {
    /// All images together, and the most that they may be.
    public var images: Int64
    public var budget: Int64
    /// Of the file system; `least` must stay free.
    public var free: Int64
    public var total: Int64
    public var least: Int64

    public init(images: Int64, budget: Int64, free: Int64, total: Int64, least: Int64) {
      self.images = images
      self.budget = budget
      self.free = free
      self.total = total
      self.least = least
    }
  }

  /// How long wakes took, from the order until the worker ran.
  public struct WakeTimes: Codable, Hashable, Sendable {
    /// `suspended` or `hibernated`: the state that it was woken from.
    public var from: String
    /// All of them together.
    public var seconds: Double
    /// Upper bounds in seconds, rising.
    public var bounds: [Double]
    /// The number of wakes up to each bound, and not up to the one before it; then those above all.
    public var counts: [Int]

    public init(from: String, seconds: Double, bounds: [Double], counts: [Int]) {
      self.from = from
      self.seconds = seconds
      self.bounds = bounds
      self.counts = counts
    }
  }

  /// What became of the commands of `on:`.
  public struct Hooks: Codable, Hashable, Sendable {
    public var succeeded = 0
    public var failed = 0
    public var timedOut = 0
    /// Events for which no command was started: too many waited.
    public var dropped = 0

    public init() {}
  }
}
