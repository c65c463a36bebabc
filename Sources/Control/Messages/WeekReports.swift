/// One worker in one week (`report`). Sizes are in bytes, times in seconds.
public struct WeekReport: Codable, Hashable, Sendable {
  /// The date of the week's Monday, UTC: `2026-11-16`.
  public var week: String
  public var worker: String
  public var launches = 0
  public var failedLaunches = 0
  public var crashes = 0
  public var launchTimeouts = 0
  public var memoryTerminations = 0
  public var watchdogTerminations = 0
  /// The number of runs in which its footprint was larger at each suspension.
  public var leakSuspicions = 0
  public var suspensions = 0
  public var hibernations = 0
  public var resumes = 0
  public var maxResume = 0.0
  /// The median duration of the resumes, within 10 %.
  public var resumeP50: Double?
  /// The 95th percentile of the duration of the resumes, within 10 %.
  public var resumeP95: Double?
  /// The time in which it was suspended or hibernated.
  public var asleepSeconds = 0.0
  /// The memory by which hibernation made its footprint smaller, over time, in byte·hours.
  public var savedByteHours = 0.0
  public var averageFootprint: Int64 = 0
  public var peakFootprint: Int64 = 0
  public var aliveSeconds = 0.0

  public init(week: String, worker: String) {
    self.week = week
    self.worker = worker
  }
}

/// The output of `report --json`.
public struct WeeksReport: Codable, Hashable, Sendable {
  /// The weeks, the newest first; within a week in the order of the workers' names.
  public var weeks: [WeekReport]
  /// The crashes in the order of the workers' names; for each worker, the newest first.
  public var crashes: [CrashReport]

  public init(weeks: [WeekReport], crashes: [CrashReport] = []) {
    self.weeks = weeks
    self.crashes = crashes
  }
}

/// Whether the engine makes the same decisions again (`replay`).
public struct ReplayReport: Codable, Hashable, Sendable {
  public var segments = 0
  public var daemons = 0
  public var events = 0
  public var directives = 0
  public var from: String?
  public var to: String?
  public var differingEvents = 0
  /// The first differences.
  public var differences: [Difference] = []
  /// Problems of the journal.
  public var problems: [String] = []
  /// The comparison with one other policy.
  public var comparison: PolicyComparison?
  /// The comparisons with several other policies, in the order in which they were named.
  public var comparisons: [PolicyComparison]?
  /// The totals of all workers, first as recorded, then under each other policy.
  public var totals: [PolicyTotals]?

  public struct Difference: Codable, Hashable, Sendable {
    public var time: String
    public var event: String
    /// The recorded directive, as JSON of the journal.
    public var recorded: String?
    /// The directive of the replay, as JSON of the journal.
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

/// What one history costs and saves, for all workers together (`replay --policy`).
public struct PolicyTotals: Codable, Hashable, Sendable {
  /// The policy's name; absent for the recorded history.
  public var policy: String?
  /// The bytes of the workers' footprints, averaged over the time of the journal.
  public var averageFootprint: Int64 = 0
  /// The bytes that hibernation saved, averaged over that time.
  public var averageSaved: Int64 = 0
  public var suspensions = 0
  public var hibernations = 0
  /// The number of wakes from suspension and from hibernation.
  public var wakes = 0
  /// The number of launches of workers that had been terminated and were used again.
  public var relaunches = 0
  /// The time that clients waited for resumes and relaunches.
  public var waitSeconds = 0.0
  public var terminations = 0
  public var warnings = 0
  /// The number of changes of state that only one of this history and the recorded one has.
  public var differingChanges = 0

  public init(policy: String? = nil) { self.policy = policy }
}

/// The recorded history compared with that under another policy (`replay --policy`).
public struct PolicyComparison: Codable, Hashable, Sendable {
  /// The other policy's name.
  public var policy: String
  /// The workers by name. The last pair, without a name, is the sum of all.
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
    /// The total time of the resumes.
    public var resumeSeconds = 0.0
    public var freed: Int64 = 0
    public var averageFootprint: Int64 = 0
    /// The time in each state, by the state's name.
    public var seconds: [String: Double] = [:]
    public init() {}
  }

  /// A change of state that only one of the two histories has.
  public struct Change: Codable, Hashable, Sendable {
    public var time: String
    public var worker: String
    public var from: String
    public var to: String
    public var why: CodedText
    /// True if the recorded history has the change.
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
