import Policy

/// The reason for a transition, as data. `sentence` is its text for people, `code` its text for
/// programs.
public enum Cause: Codable, Hashable, Sendable {
  /// The worker is declared and has never been started.
  case added
  /// A person or a program requested it.
  case requested(Request.Verb)
  /// The worker was started without a person's request. The verb is that of the request.
  case starting(Request.Occasion, Request.Verb)
  /// The process was started. The worker doesn't announce readiness, or isn't ready yet.
  case launched
  case becameReady
  /// Another worker took the foreground.
  case displaced(by: WorkerID)
  /// The worker was in the foreground without activity for this time.
  case idle(Duration)
  /// The worker shows activity: traffic, output or processor time (`foreground.mode: activity`).
  case active
  /// Suspended because the worker answered, its grace was over, or a deadline passed. The duration
  /// is the time in the background; journals of earlier versions lack it. `isIdle`: that time
  /// counts as idle, because `foreground.mode` is `activity`.
  case graceOver(Duration? = nil, isIdle: Bool? = nil)
  /// Something waits for the sleeping worker. The text names it, such as a connection.
  case wakeNeeded(String)
  /// The worker was suspended for this time (`hibernate.after`). Less than 1 s:
  /// `hibernate.at_once_up_to`.
  case suspendedFor(Duration)
  /// A sleeping worker runs for a moment (`background.heartbeat`), or has done so.
  case heartbeat
  /// A timer or a timed wait of the worker was due. The text says which.
  case timer(String)
  /// Another worker woke, and this one wakes with it (`wake_with`). `forTimer`: the other worker
  /// woke only because one of its own timers was due.
  case wokenWith(WorkerID, forTimer: Bool)
  /// A timer of the worker had woken it, and the worker has nothing more to do.
  case quietAgain
  case pressure(PressureLevel)
  /// The footprint was over a limit in `limits.footprint`.
  case footprint(FootprintExcess)
  /// The worker was launched again after it had been ended for its footprint.
  case restartedForFootprint(FootprintExcess)
  /// The worker missed a deadline. The text says which.
  case watchdog(String)
  case exited(ExitStatus)
  /// A launch, suspension, hibernation or resume failed. The text says why.
  case failed(String)
  case adopted
  /// The worker was given back, running, to the program that supervises it.
  case released
  /// An operation succeeded. Only earlier versions record this cause.
  case succeeded
  /// The worker's leader decided this. The text is the leader's reason; `nil`: the leader gave
  /// none.
  case led(String? = nil)
}

/// One burst of terminations for lack of memory. It is reported when the burst is over.
public struct JetsamReport: Codable, Hashable, Sendable {
  public var at: Instant
  /// The pressure level when the burst began.
  public var level: PressureLevel
  /// What had been measured when the burst began, as text.
  public var why: String
  /// The memory that the policy distributes: that of the machine, or of the simulated device.
  public var budget: ByteCount
  /// The available memory when the burst began.
  public var availableBefore: ByteCount
  /// The available memory when the burst ended.
  public var availableAfter: ByteCount
  /// The live worker with the largest footprint when the burst began.
  public var largest: WorkerID?
  /// All live workers as they were when the burst began, in the order of termination.
  public var entries: [Entry]

  /// One worker as it was when the burst began.
  public struct Entry: Codable, Hashable, Sendable {
    public var worker: WorkerID
    public var state: WorkerState
    /// The band, with the importance and the bonus for early wakes.
    public var band: Int
    public var footprint: ByteCount
    public var peakFootprint: ByteCount
    /// The time since the worker was last used; zero in the foreground.
    public var sinceUse: Duration
    /// The time since the worker was launched or adopted.
    public var age: Duration
    /// Why the worker was chosen. `nil`: it wasn't terminated.
    public var victimBecause: String?
    /// How much memory the termination freed.
    public var gaveBack: ByteCount?
    /// What protected the worker from termination. `nil`: nothing.
    public var protection: Protection?
  }
}

/// A worker as the engine sees it at one moment, for `ps` and `status`.
public struct WorkerSnapshot: Hashable, Sendable {
  public var worker: WorkerID
  public var state: WorkerState
  /// The number that orders workers for termination, 0–100. The lowest is terminated first.
  public var band: Int
  public var profile: WorkerProfile
  /// The last measured footprint; zero before the first measurement.
  public var footprint: ByteCount
  /// The largest footprint that was measured in this run.
  public var peakFootprint: ByteCount
  /// When the worker entered its state.
  public var since: Instant
  /// When the worker was last used. For a foreground worker that is the time of the snapshot.
  public var lastUsed: Instant
  /// The reason for the last transition.
  public var cause: Cause
  /// Why the worker isn't hibernated, and what would have to change. `nil`: it is hibernated.
  public var hibernationVerdict: Verdict?
  /// The size of its image on disk. `nil`: it isn't hibernated.
  public var imageSize: ByteCount?
  /// The learned time from a launch to readiness. `nil`: not measured yet.
  public var launchCost: Duration?
  /// The time of the last resume from hibernation. `nil`: none was measured.
  public var resumeCost: Duration?
  public var lastExit: ExitStatus?
  /// The names of its open background tasks.
  public var tasks: [String]
  /// What the last shed request achieved. A missing answer is recorded and has no other effect.
  public var lastShed: ShedRecord?
  /// The last deadline that the worker missed.
  public var lastMiss: Miss?
  /// Its early wakes. `nil`: the worker was never needed again too soon after it was put to sleep.
  public var earlyWake: EarlyWake?
  /// The purgeable memory that the worker offers.
  public var purgeable: ByteCount
  /// Shadow mode applies: the policy's decisions for this worker are logged, not applied.
  public var isShadow: Bool
  /// A request (`shadow` or `enforce`) set the mode. It overrides the policies.
  public var isModeByRequest: Bool
  /// What protects the worker from termination for lack of memory. `nil`: nothing.
  public var protection: Protection?
  /// When the protection by request ends. `nil`: there is none, or it has no time limit.
  public var protectedUntil: Instant?
  /// When the worker fell asleep. `nil`: it doesn't sleep, or an earlier daemon put it to sleep.
  public var asleepSince: Instant?
  /// The last resume in this run. `nil`: there was none.
  public var lastWake: LastWake?
  /// The announced termination for lack of memory (`terminate: ask`). `nil`: none is announced.
  public var notice: TerminationNotice?
  /// Its restarts for its footprint. `nil`: there were none.
  public var footprintRestarts: FootprintRestarts?
  /// The suspicion that the worker leaks memory. `nil`: there is no sign of it.
  public var leak: LeakSuspicion?
  /// What would have been done with the worker outside shadow mode. `nil`: nothing.
  public var shadow: ShadowSummary?
}

/// The last time that a worker was resumed in this run.
public struct LastWake: Codable, Hashable, Sendable {
  public var at: Instant
  public var cause: Cause
}

/// A deadline that a worker missed.
public struct Miss: Codable, Hashable, Sendable {
  public var at: Instant
  /// A clause such as `it did not answer …`.
  public var text: String
}

/// Memory warnings that a worker answered in this run without freeing memory. The count is dropped
/// when a request frees some.
public struct FruitlessWarnings: Codable, Hashable, Sendable {
  public var count: Int
  public var last: Instant

  /// A smaller change doesn't count: a program's footprint varies by as much while it answers.
  static let minYield = ByteCount.kilobytes(64)
}

/// What a shed request achieved. Both footprints were measured.
public struct ShedRecord: Codable, Hashable, Sendable {
  public var kind: Directive.ShedKind
  public var at: Instant
  /// The footprint before the request.
  public var before: ByteCount
  /// The footprint after the answer or the deadline.
  public var after: ByteCount
  /// Whether the answer came in time.
  public var answered: Bool
}
