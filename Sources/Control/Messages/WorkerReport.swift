/// One worker, for `ps` and `status`. Sizes are in bytes, times in seconds.
public struct WorkerReport: Codable, Hashable, Sendable {
  public var name: String
  public var state: String
  public var band = 0
  public var importance = 0
  /// The groups that it belongs to; nil if there are none.
  public var groups: [String]?
  public var pid: Int32?
  public var processes = 0
  public var footprint: Int64 = 0
  public var peakFootprint: Int64 = 0
  /// Private and shared clean file pages that the kernel can reclaim by itself.
  public var reclaimable: Int64 = 0
  /// The part of `footprint` that its processes share since a fork. It is anonymous memory, which
  /// hibernation doesn't move; nil if there is none.
  public var sharedByFork: Int64?
  /// The age of `reclaimable` and, while the worker runs, of `footprint`; nil if neither has been
  /// measured.
  public var measuredSecondsAgo: Double?
  /// The size of its image on disk, while it is hibernated or trimmed.
  public var imageSize: Int64?
  /// The size of the last image that stays on disk as the base of the next one, while it isn't
  /// hibernated.
  public var baseSize: Int64?
  public var secondsInState: Double = 0
  public var secondsSinceUse: Double = 0
  /// The time since it fell asleep, while it is suspended or hibernated; nil if an earlier daemon
  /// suspended it.
  public var secondsAsleep: Double?
  /// The interval of a timer by which it works, while it sleeps and nothing wakes it for that
  /// timer.
  public var stoppedTimerSeconds: Double?
  /// True while it sleeps if it wrote regularly before that, and nothing wakes it to write.
  public var stopsWriting: Bool?
  /// What last woke it in this run; nil if it hasn't slept.
  public var lastWake: LastWakeReport?
  /// The command with which it was launched, if it runs.
  public var command: [String] = []
  /// The keys of its configuration that have changed since its launch. They apply when it is
  /// started again.
  public var changedSinceLaunch: [String]?
  public var policy = ""
  public var log: String?
  /// The user, as a name or number, with whose rights root should read `log`. It is set if the
  /// configuration names the file and the worker runs as that user; nil means root's own rights.
  public var logUser: String?
  /// The path of a file that records the length of its log over time. Each line has seconds since
  /// 1970 and bytes.
  public var logTimes: String?
  /// The reason for its state.
  public var reason = CodedText("other", "")
  /// The reason why it isn't hibernated, if it isn't.
  public var hibernation: CodedText?
  public var launchSeconds: Double?
  public var resumeSeconds: Double?
  /// The duration of its last hibernation.
  public var hibernateSeconds: Double?
  /// The bytes that its last hibernation wrote to disk.
  public var hibernateWritten: Int64?
  /// The bytes of its memory that were on disk already, unchanged, at its last hibernation.
  public var hibernateUnchanged: Int64?
  /// The number of bytes by which hibernation made its footprint smaller, while it is hibernated.
  public var saved: Int64?
  /// What its sleep saved today and in the last seven days. Only `status` of one worker reports it.
  public var savings: RecentSavingsReport?
  /// When it was last used, and how often it is. Only `status` of one worker reports it.
  public var activity: ActivityReport?
  /// The measured effect of the last request to free memory.
  public var lastShed: ShedReport?
  /// The last deadline of its watchdog that it missed.
  public var lastMiss: CodedText?
  /// How often it was suspended or hibernated too early, and the effect of that.
  public var earlyWake: EarlyWakeReport?
  /// What shadow mode would have done with it.
  public var shadow: ShadowReport?
  /// Why it isn't terminated for lack of memory; absent if it may be.
  public var protection: CodedText?
  /// The seconds until `protect --for` ends by itself.
  public var protectedSeconds: Double?
  /// Why it will be terminated for lack of memory if nothing changes.
  public var notice: CodedText?
  /// The seconds until that termination.
  public var noticeSeconds: Double?
  /// Its `limits.footprint`; absent if it has none.
  public var footprintLimits: FootprintLimitReport?
  /// Evidence that it may leak memory; absent if there is none.
  public var leak: LeakReport?
  /// The bytes of purgeable memory that it offers.
  public var purgeable: Int64?
  /// The status that it last reported (sd_notify's `STATUS=`).
  public var says: String?
  /// The snapshot that it has provided to be shown, mainly while it sleeps. Only `status` of one
  /// worker reports it.
  public var snapshot: SnapshotReport?
  /// The number of connections over which it uses the worker protocol (`DORMOUSE_WORKER_SOCKET`).
  public var connections: Int?
  /// The messages of it that had no effect, as a sentence: late or unexpected answers, and refused
  /// connections.
  public var talk: CodedText?
  /// How it is resumed from an image, and why.
  public var resume: CodedText?
  public var lastExit: ExitStatusReport?
  /// Its trims; nil if it wasn't trimmed, has all memory in RAM, and its policy doesn't trim it.
  public var trim: TrimReport?
  /// The bytes of its processes that are in swap, or in the image of a trim. Only `status` reports
  /// them.
  public var swapped: Int64?
  /// The ends of its last runs, the latest last.
  public var exits: [ExitReport]?
  /// The number of automatic restarts since it was last started by request.
  public var restarts: Int?
  /// The seconds until it is started again, while it backs off.
  public var restartsInSeconds: Double?
  /// The names of the workers that it waits for before it is started.
  public var waitsFor: [String]?
  /// Why its liveness probe failed, if the last result was a failure.
  public var livenessFailure: CodedText?
  /// The time at which its schedule wakes it next, in seconds since 1970.
  public var nextWake: Int64?
  /// The number of health checks that were answered for it since it fell asleep.
  public var answeredAsleep: Int?
  /// The signal that makes it read its configuration again, such as `SIGHUP`.
  public var reloadSignal: String?
  /// The cgroup of its processes, if it has one of its own. In `status` it includes the kernel's
  /// counts.
  public var cgroup: CgroupReport?
  /// The names of its background tasks.
  public var tasks: [String] = []
  /// True if another program has started and supervises it.
  public var isAdopted: Bool?
  /// The rule of `adopt:` by which it was adopted.
  public var rule: String?
  /// The pid of its wrapper (`dormouse wrap`), if it has one.
  public var wrapper: Int32?
  /// The program or terminal that started its wrapper. It is only set for a wrapped worker.
  public var host: String?
  /// The directory in which its wrapper was started, usually that of a project. It is only set for
  /// a wrapped worker.
  public var directory: String?
  /// The number of times that it was woken. It is only set for a wrapped worker.
  public var wakes: Int?
  /// Counters of its history since the daemon started. Only `status` reports them.
  public var counters: WorkerCounters?

  public init(name: String, state: String) {
    self.name = name
    self.state = state
  }

  /// True if it doesn't run, and the daemon doesn't plan to start it.
  public var isOver: Bool {
    let planned = ["backing_off", "waits_for_memory", "waits_for_worker"]
    return state == "terminated" && !planned.contains(reason.code)
  }
}

/// The end of one run of a worker.
public struct ExitReport: Codable, Hashable, Sendable {
  /// The time of the end in seconds since 1970.
  public var at: Int64
  public var why: CodedText
  /// The footprint in bytes, as it was last measured.
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
