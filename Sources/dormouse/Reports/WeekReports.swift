import Control

/// One worker in one week (`report`). Sizes are in bytes, times in seconds.
struct WeekReport: Codable, Hashable, Sendable {
  /// The date of the week's Monday, UTC: `2026-11-16`.
  var week: String
  var worker: String
  var launches = 0
  var failedLaunches = 0
  var crashes = 0
  var launchTimeouts = 0
  var memoryTerminations = 0
  var watchdogTerminations = 0
  /// The number of runs in which its footprint was larger at each suspension.
  var leakSuspicions = 0
  var suspensions = 0
  var hibernations = 0
  var resumes = 0
  var maxResume = 0.0
  /// The median duration of the resumes, within 10 %.
  var resumeP50: Double?
  /// The 95th percentile of the duration of the resumes, within 10 %.
  var resumeP95: Double?
  /// The time in which it was suspended or hibernated.
  var asleepSeconds = 0.0
  /// The memory by which hibernation made its footprint smaller, over time, in byte·hours.
  var savedByteHours = 0.0
  var averageFootprint: Int64 = 0
  var peakFootprint: Int64 = 0
  var aliveSeconds = 0.0
}

/// The output of `report --json`.
struct WeeksReport: Codable, Hashable, Sendable {
  /// The weeks, the newest first; within a week in the order of the workers' names.
  var weeks: [WeekReport]
  /// The crashes in the order of the workers' names; for each worker, the newest first.
  var crashes: [CrashReport] = []
}

/// Whether the engine makes the same decisions again (`replay`).
struct ReplayReport: Codable, Hashable, Sendable {
  var segments = 0
  var daemons = 0
  var events = 0
  var directives = 0
  var from: String?
  var to: String?
  var differingEvents = 0
  /// The first differences.
  var differences: [Difference] = []
  /// Problems of the journal.
  var problems: [String] = []
  /// The comparison with one other policy.
  var comparison: PolicyComparison?
  /// The comparisons with several other policies, in the order in which they were named.
  var comparisons: [PolicyComparison]?
  /// The totals of all workers, first as recorded, then under each other policy.
  var totals: [PolicyTotals]?

  struct Difference: Codable, Hashable, Sendable {
    var time: String
    var event: String
    /// The recorded directive, as JSON of the journal.
    var recorded: String?
    /// The directive of the replay, as JSON of the journal.
    var replayed: String?
  }
}

/// What one history costs and saves, for all workers together (`replay --policy`).
struct PolicyTotals: Codable, Hashable, Sendable {
  /// The policy's name; absent for the recorded history.
  var policy: String?
  /// The bytes of the workers' footprints, averaged over the time of the journal.
  var averageFootprint: Int64 = 0
  /// The bytes that hibernation and trims saved, averaged over that time.
  var averageSaved: Int64 = 0
  var suspensions = 0
  var hibernations = 0
  /// The number of wakes from suspension and from hibernation.
  var wakes = 0
  /// The number of launches of workers that had been terminated and were used again.
  var relaunches = 0
  /// The time that clients waited for resumes and relaunches.
  var waitSeconds = 0.0
  var terminations = 0
  var warnings = 0
  /// The number of changes of state that only one of this history and the recorded one has.
  var differingChanges = 0
}

/// The recorded history compared with that under another policy (`replay --policy`).
struct PolicyComparison: Codable, Hashable, Sendable {
  /// The other policy's name.
  var policy: String
  /// The workers by name. The last pair, without a name, is the sum of all.
  var workers: [Pair]
  var relaunches: Int
  var relaunchSeconds: Double
  var differingChanges: Int
  var firstChanges: [Change]

  struct Pair: Codable, Hashable, Sendable {
    var worker: String?
    var recorded: Counts
    var other: Counts
  }

  struct Counts: Codable, Hashable, Sendable {
    var terminations = 0
    var hibernations = 0
    var suspensions = 0
    var warnings = 0
    var launches = 0
    var wakes = 0
    var resumes = 0
    /// The total time of the resumes.
    var resumeSeconds = 0.0
    var freed: Int64 = 0
    var averageFootprint: Int64 = 0
    /// The time in each state, by the state's name.
    var seconds: [String: Double] = [:]
  }

  /// A change of state that only one of the two histories has.
  struct Change: Codable, Hashable, Sendable {
    var time: String
    var worker: String
    var from: String
    var to: String
    var why: CodedText
    /// True if the recorded history has the change.
    var isRecorded: Bool
  }
}
