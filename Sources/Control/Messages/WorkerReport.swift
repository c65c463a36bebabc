/// One worker, for `ps` and `status`. Sizes in bytes, times in seconds.
public struct WorkerReport: Codable, Hashable, Sendable {
  public var name: String
  public var state: String
  public var band: Int
  public var importance: Int
  /// The groups that it belongs to; nil: none.
  public var groups: [String]?
  public var pid: Int32?
  public var processes: Int
  public var footprint: Int64
  public var peakFootprint: Int64
  /// Private and shared clean file pages that the kernel can take back by itself.
  public var reclaimable: Int64
  /// Part of `footprint`: anonymous memory that its processes share since a fork, which hibernation
  /// doesn't move; nil: none.
  public var sharedByFork: Int64?
  /// How old `reclaimable` and, while the worker runs, `footprint` are; nil: neither has been measured.
  public var measuredSecondsAgo: Double?
  /// While it is hibernated: what it holds on disk.
  public var imageSize: Int64?
  /// While it isn't: what stays on disk of its last image, for the next one to build on.
  public var baseSize: Int64?
  public var secondsInState: Double
  public var secondsSinceUse: Double
  /// While it sleeps: since it fell asleep, suspended or hibernated. nil also where an earlier daemon put it to sleep.
  public var secondsAsleep: Double?
  /// While it sleeps: the interval of its own timer, by which it works and for which nothing wakes
  /// it.
  public var stoppedTimerSeconds: Double?
  /// While it sleeps: it wrote regularly until then, and nothing wakes it for that.
  public var stopsWriting: Bool?
  /// What woke it last in this run; nil: it hasn't slept.
  public var lastWake: LastWakeReport?
  /// With which it was launched, where it runs.
  public var command: [String]
  /// Its configuration has changed in these keys since: they apply when it is started again.
  public var changedSinceLaunch: [String]?
  public var policy: String
  public var log: String?
  /// The user, as a name or number, with whose rights root is to read `log`, because the configuration names
  /// the file and the worker runs as that user; nil: with root's own.
  public var logUser: String?
  /// When its log had which length: a line for each note, with seconds since 1970 and bytes.
  public var logTimes: String?
  /// Why it is in this state.
  public var reason: CodedText
  /// Why it isn't hibernated, where it isn't.
  public var hibernation: CodedText?
  public var launchSeconds: Double?
  public var resumeSeconds: Double?
  /// Its last hibernation: how long it took, what was written to disk for it, and how much of its memory
  /// was there already, unchanged.
  public var hibernateSeconds: Double?
  public var hibernateWritten: Int64?
  public var hibernateUnchanged: Int64?
  /// While it is hibernated: how many bytes smaller its footprint is than right before.
  public var saved: Int64?
  /// Today, and in the last seven days; `status` of one worker only.
  public var savings: RecentSavingsReport?
  /// When it was last used, and how often it is; `status` of one worker only.
  public var activity: ActivityReport?
  /// What the last request to give memory back achieved.
  public var lastShed: ShedReport?
  /// The last watchdog's deadline that it missed.
  public var lastMiss: CodedText?
  /// Put away too early, how often, and what that has earned it.
  public var earlyWake: EarlyWakeReport?
  /// What shadow mode would have done with it.
  public var shadow: ShadowReport?
  /// Why it isn't terminated for lack of memory; absent: it may be.
  public var protection: CodedText?
  /// After this time `protect --for` ends by itself.
  public var protectedSeconds: Double?
  /// It will be terminated for lack of memory, if nothing changes: why, and in how many seconds.
  public var notice: CodedText?
  public var noticeSeconds: Double?
  /// `limits.footprint`; absent: none.
  public var footprintLimits: FootprintLimitReport?
  /// It may lose memory; absent: no sign of it.
  public var leak: LeakReport?
  /// On offer to be taken.
  public var purgeable: Int64?
  /// What it last said of itself (sd_notify's `STATUS=`).
  public var says: String?
  /// What it wants to be shown of it, above all while it sleeps; `status` of one worker only.
  public var snapshot: SnapshotReport?
  /// The number of connections over which it uses the worker protocol (`DORMOUSE_WORKER_SOCKET`).
  public var connections: Int?
  /// What came of that which had no effect: answers that were late, or to nothing; connections that were
  /// turned away. A sentence.
  public var talk: CodedText?
  /// How it is resumed from an image, and why.
  public var resume: CodedText?
  public var lastExit: ExitStatusReport?
  /// Bytes of its processes that are in swap; only in `status`.
  public var swapped: Int64?
  /// How its last runs ended, the latest last.
  public var exits: [ExitReport]?
  /// Automatic restarts since the worker was last started by request.
  public var restarts: Int?
  /// While it backs off: seconds until it is started again.
  public var restartsInSeconds: Double?
  /// While it waits for other workers before it is started: their names.
  public var waitsFor: [String]?
  /// Why its probe of liveness failed, where the last answer was a failure.
  public var livenessFailure: CodedText?
  /// When its schedule wakes it next, in seconds since 1970.
  public var nextWake: Int64?
  /// Health checks that were answered for it since it fell asleep.
  public var answeredAsleep: Int?
  /// The signal that makes it read its configuration again: `SIGHUP`.
  public var reloadSignal: String?
  /// The cgroup that its processes are in, where it has one of its own; in `status`, with what the
  /// kernel counts of it.
  public var cgroup: CgroupReport?
  public var tasks: [String]
  /// Another program has started it, and supervises it.
  public var isAdopted: Bool?
  /// The rule of `adopt:` by which that was done.
  public var rule: String?
  /// The process of `dormouse wrap` that it belongs to.
  public var wrapper: Int32?
  /// Of a wrapped worker: the program that started its wrapper, or its terminal.
  public var host: String?
  /// Of a wrapped worker: where its wrapper was started, usually the project's directory.
  public var directory: String?
  /// How often it has been woken; reported of wrapped workers.
  public var wakes: Int?
  /// What happened to it since the daemon started; only in `status`.
  public var counters: WorkerCounters?

  public init(name: String, state: String) {
    self.name = name
    self.state = state
    band = 0
    importance = 0
    processes = 0
    footprint = 0
    peakFootprint = 0
    reclaimable = 0
    secondsInState = 0
    secondsSinceUse = 0
    command = []
    policy = ""
    reason = CodedText("other", "")
    tasks = []
  }
}

/// How one run of a worker ended.
public struct ExitReport: Codable, Hashable, Sendable {
  /// Seconds since 1970.
  public var at: Int64
  public var why: CodedText
  /// Bytes, as last measured.
  public var footprint: Int64
  /// The last line of its log.
  public var lastWords: String?

  public init(at: Int64, why: CodedText, footprint: Int64, lastWords: String? = nil) {
    self.at = at
    self.why = why
    self.footprint = footprint
    self.lastWords = lastWords
  }
}
