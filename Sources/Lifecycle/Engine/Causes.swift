import Policy

/// Why something happened, as data; `sentence` is for people.
public enum Cause: Codable, Hashable, Sendable {
  /// The worker is declared and has never been started.
  case added
  case requested(Request.Verb)
  /// Started without a person's request; the verb is that of the request.
  case starting(Request.Occasion, Request.Verb)
  case launched
  case becameReady
  /// Another worker took the foreground.
  case displaced(by: WorkerID)
  case idle(Duration)
  case active
  /// Suspended because the worker answered, its grace was over, or a deadline passed. The duration is
  /// the time in the background (`nil` in journals of earlier versions). `isIdle` says that the time
  /// counts as idle: `foreground.mode` is `activity`.
  case graceOver(Duration? = nil, isIdle: Bool? = nil)
  case wakeNeeded(String)
  case suspendedFor(Duration)
  /// A sleeping worker runs for a moment (`background.heartbeat`), or has done so.
  case heartbeat
  /// A timer or time-out of the worker's own was due.
  case timer(String)
  /// Another worker woke, and this one wakes with it (`wake_with`). `forTimer`: a timer of the other
  /// worker's own was due, and nothing else waited for it.
  case wokenWith(WorkerID, forTimer: Bool)
  /// The worker's own timer had woken it, and the worker has nothing more to do.
  case quietAgain
  case pressure(PressureLevel)
  /// Its footprint was over one of its `limits.footprint`.
  case footprint(FootprintExcess)
  /// Launched again after it was ended for its footprint.
  case restartedForFootprint(FootprintExcess)
  case watchdog(String)
  case exited(ExitStatus)
  case failed(String)
  case adopted
  /// Given back, alive, to the program that supervises it.
  case released
  case succeeded
  /// Done by the engine that leads the worker, for this reason, if it is known.
  case led(String? = nil)
}

/// One burst of terminations for memory, reported after recovery.
public struct JetsamReport: Codable, Hashable, Sendable {
  public var at: Instant
  public var level: PressureLevel
  public var why: String
  public var budget: ByteCount
  public var availableBefore: ByteCount
  public var availableAfter: ByteCount
  public var largest: WorkerID?
  /// Every worker as it was when the burst began, in the order of termination.
  public var entries: [Entry]

  public struct Entry: Codable, Hashable, Sendable {
    public var worker: WorkerID
    public var state: WorkerState
    public var band: Int
    public var footprint: ByteCount
    public var peakFootprint: ByteCount
    public var sinceUse: Duration
    /// Since its launch, or since it was adopted.
    public var age: Duration
    /// Set for the victims: why this one was chosen, and how much memory it freed.
    public var victimBecause: String?
    public var gaveBack: ByteCount?
    /// Set if the worker was protected: by what.
    public var protection: Protection?
  }
}

/// A worker as the engine sees it, for `ps` and `status`.
public struct WorkerSnapshot: Hashable, Sendable {
  public var worker: WorkerID
  public var state: WorkerState
  public var band: Int
  public var profile: WorkerProfile
  public var footprint: ByteCount
  public var peakFootprint: ByteCount
  public var since: Instant
  public var lastUsed: Instant
  public var cause: Cause
  /// Why the worker isn't hibernated and what would have to change; `nil` if it is hibernated.
  public var hibernationVerdict: Verdict?
  public var imageSize: ByteCount?
  /// Learned: the last launch to readiness, and the last resume from hibernation.
  public var launchCost: Duration?
  public var resumeCost: Duration?
  public var lastExit: ExitStatus?
  public var tasks: [String]
  /// What the last shed request achieved. A missing answer is recorded and has no other effect.
  public var lastShed: ShedRecord?
  public var lastMiss: Miss?
  /// Set if the worker was needed again too soon after it was put to sleep, at least once.
  public var earlyWake: EarlyWake?
  /// The memory that the worker offers to be taken.
  public var purgeable: ByteCount
  /// Shadow mode: the policy's decisions for this worker are logged, not applied.
  public var isShadow: Bool
  /// The request `shadow` or `enforce` set the mode, whatever the policies say.
  public var isModeByRequest: Bool
  /// What protects the worker from termination for lack of memory.
  public var protection: Protection?
  /// When the protection by request ends by itself.
  public var protectedUntil: Instant?
  /// While the worker sleeps; `nil` also if an earlier daemon put it to sleep.
  public var asleepSince: Instant?
  public var lastWake: LastWake?
  /// It will be terminated for lack of memory, if nothing changes.
  public var notice: TerminationNotice?
  /// Its restarts for its footprint; `nil`: none.
  public var footprintRestarts: FootprintRestarts?
  /// It may lose memory; `nil`: no sign of it.
  public var leak: LeakSuspicion?
  /// What shadow mode would have done with the worker.
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
  /// A clause: `it did not answer …`.
  public var text: String
}

/// Memory warnings that a worker has answered in this run without freeing memory; forgotten when a
/// request frees some.
public struct FruitlessWarnings: Codable, Hashable, Sendable {
  public var count: Int
  public var last: Instant

  /// A smaller change counts as nothing: a program's footprint varies by as much while it answers.
  static let minYield = ByteCount.kilobytes(64)
}

/// What a shed request achieved, measured.
public struct ShedRecord: Codable, Hashable, Sendable {
  public var kind: Directive.ShedKind
  public var at: Instant
  public var before: ByteCount
  public var after: ByteCount
  /// The answer came in time.
  public var answered: Bool
}
