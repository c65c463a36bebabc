import Policy

/// Why something happened, as data; `sentence` is for people.
public enum Cause: Codable, Hashable, Sendable {
  /// Known, and never started.
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
  /// Suspended because it answered, its grace was over, or a deadline passed.
  /// How long it was in the background (`nil`: journals of earlier versions don't say), and whether that
  /// means idle: with `foreground.mode: activity`.
  case graceOver(Duration? = nil, isIdle: Bool? = nil)
  case wakeNeeded(String)
  case suspendedFor(Duration)
  /// A sleeper runs for a moment (`background.heartbeat`), or has done so.
  case heartbeat
  /// A timer or time-out of its own was due.
  case timer(String)
  /// Its own timer had woken it, and it has nothing more to do.
  case quietAgain
  case pressure(PressureLevel)
  case watchdog(String)
  case exited(ExitStatus)
  case failed(String)
  case adopted
  /// Given back, alive, to whoever supervises it.
  case released
  case succeeded
  /// Whoever leads its life did it.
  case led
}

/// One burst of terminations for memory, told after recovery.
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
    /// Set for the victims: why this one was chosen, and what it gave back.
    public var victimBecause: String?
    public var gaveBack: ByteCount?
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
  /// Why it isn't hibernated and what would have to change, where it isn't; a sentence.
  public var hibernationVerdict: Verdict?
  public var imageSize: ByteCount?
  /// Learned: the last launch to readiness, and the last resume from hibernation.
  public var launchCost: Duration?
  public var resumeCost: Duration?
  public var lastExit: ExitStatus?
  public var tasks: [String]
  /// What the last shed request achieved. A missing answer is recorded, and nothing worse.
  public var lastShed: ShedRecord?
  public var lastMiss: Miss?
  /// It was wanted again too soon after it was put away, at least once.
  public var earlyWake: EarlyWake?
  /// What it offers to be taken.
  public var purgeable: ByteCount
  /// Only told what the policy would do with it.
  public var isShadow: Bool
  /// `shadow` or `enforce` was asked for, whatever the policies say.
  public var isModeByRequest: Bool
  /// What shadow mode would have done with it.
  public var shadow: ShadowSummary?
}

/// A deadline that a worker missed.
public struct Miss: Codable, Hashable, Sendable {
  public var at: Instant
  /// A clause: `it did not answer …`.
  public var text: String
}

/// Memory warnings that a worker has answered in this run, and that brought nothing; forgotten when
/// a request brings something.
public struct FruitlessWarnings: Codable, Hashable, Sendable {
  public var count: Int
  public var last: Instant

  /// Less is nothing: a program's footprint moves by as much while it answers.
  static let minYield = ByteCount.kilobytes(64)
}

/// What a shed request achieved, measured.
public struct ShedRecord: Codable, Hashable, Sendable {
  public var kind: Directive.ShedKind
  public var at: Instant
  public var before: ByteCount
  public var after: ByteCount
  /// In time.
  public var answered: Bool
}
