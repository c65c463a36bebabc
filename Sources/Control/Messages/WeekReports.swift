/// `report`: one worker in one week. Sizes in bytes, times in seconds.
public struct WeekReport: Codable, Hashable, Sendable {
  /// Its Monday, UTC: `2026-11-16`.
  public var week: String
  public var worker: String
  public var launches = 0
  public var failedLaunches = 0
  public var crashes = 0
  public var launchTimeouts = 0
  public var memoryTerminations = 0
  public var watchdogTerminations = 0
  /// Runs in which its footprint was larger at each suspension.
  public var leakSuspicions = 0
  public var suspensions = 0
  public var hibernations = 0
  public var resumes = 0
  public var maxResume = 0.0
  /// How long half of the resumes, and 95 % of them, took at the most; right within 10 %.
  public var resumeP50: Double?
  public var resumeP95: Double?
  /// Suspended or hibernated.
  public var asleepSeconds = 0.0
  /// The memory by which hibernation made its footprint smaller, over time: byte·hours.
  public var savedByteHours = 0.0
  public var averageFootprint: Int64 = 0
  public var peakFootprint: Int64 = 0
  public var aliveSeconds = 0.0

  public init(week: String, worker: String) {
    self.week = week
    self.worker = worker
  }
}

/// What `report --json` prints.
public struct WeeksReport: Codable, Hashable, Sendable {
  /// The newest week first, and by the workers' names.
  public var weeks: [WeekReport]
  /// By the workers' names, and the newest first.
  public var crashes: [CrashReport]

  public init(weeks: [WeekReport], crashes: [CrashReport] = []) {
    self.weeks = weeks
    self.crashes = crashes
  }
}

/// `replay`: whether the engine does the same again.
public struct ReplayReport: Codable, Hashable, Sendable {
  public var segments = 0
  public var daemons = 0
  public var events = 0
  public var directives = 0
  public var from: String?
  public var to: String?
  public var differingEvents = 0
  /// The first ones.
  public var differences: [Difference] = []
  /// What is wrong with the journal.
  public var problems: [String] = []
  /// With one other policy.
  public var comparison: PolicyComparison?
  /// With several, in the order in which they were named.
  public var comparisons: [PolicyComparison]?
  /// With other policies: all workers together, first as recorded, then under each policy.
  public var totals: [PolicyTotals]?

  public struct Difference: Codable, Hashable, Sendable {
    public var time: String
    public var event: String
    /// As they stand in the journal, in JSON.
    public var recorded: String?
    public var replayed: String?
    public init(time: String, event: String, recorded: String?, replayed: String?) {
      self.time = time
      self.event = event
      self.recorded = recorded
      self.replayed = replayed
    }
  }

  public init() {}
}

/// `replay --policy`: what one history costs and saves, all workers together.
public struct PolicyTotals: Codable, Hashable, Sendable {
  /// Absent: the recorded history.
  public var policy: String?
  /// Bytes that workers held, on average over the time of the journal.
  public var averageFootprint: Int64 = 0
  /// Bytes that hibernation saved, on average over that time.
  public var averageSaved: Int64 = 0
  public var suspensions = 0
  public var hibernations = 0
  /// From suspension and from hibernation.
  public var wakes = 0
  /// Launches of workers that had been terminated, and were used.
  public var relaunches = 0
  /// What clients waited for: resumes and relaunches.
  public var waitSeconds = 0.0
  public var terminations = 0
  public var warnings = 0
  /// Changes of state that only one of this history and the recorded one has.
  public var differingChanges = 0

  public init(policy: String? = nil) { self.policy = policy }
}

/// `replay --policy`: two histories beside each other.
public struct PolicyComparison: Codable, Hashable, Sendable {
  /// The other policy's name.
  public var policy: String
  /// By name, and at last of all together, without a name.
  public var workers: [Pair]
  public var relaunches: Int
  public var relaunchSeconds: Double
  public var differingChanges: Int
  public var firstChanges: [Change]

  public struct Pair: Codable, Hashable, Sendable {
    public var worker: String?
    public var recorded: Counts
    public var other: Counts
    public init(worker: String?, recorded: Counts, other: Counts) {
      self.worker = worker
      self.recorded = recorded
      self.other = other
    }
  }

  public struct Counts: Codable, Hashable, Sendable {
    public var terminations = 0
    public var hibernations = 0
    public var suspensions = 0
    public var warnings = 0
    public var launches = 0
    public var wakes = 0
    public var resumes = 0
    /// Spent on resuming.
    public var resumeSeconds = 0.0
    public var freed: Int64 = 0
    public var averageFootprint: Int64 = 0
    /// By state.
    public var seconds: [String: Double] = [:]
    public init() {}
  }

  /// A change of state that only one of them has.
  public struct Change: Codable, Hashable, Sendable {
    public var time: String
    public var worker: String
    public var from: String
    public var to: String
    public var why: CodedText
    public var isRecorded: Bool
    public init(
      time: String, worker: String, from: String, to: String, why: CodedText, isRecorded: Bool
    ) {
      self.time = time
      self.worker = worker
      self.from = from
      self.to = to
      self.why = why
      self.isRecorded = isRecorded
    }
  }

  public init(
    policy: String, workers: [Pair], relaunches: Int, relaunchSeconds: Double,
    differingChanges: Int, firstChanges: [Change]
  ) {
    self.policy = policy
    self.workers = workers
    self.relaunches = relaunches
    self.relaunchSeconds = relaunchSeconds
    self.differingChanges = differingChanges
    self.firstChanges = firstChanges
  }
}
