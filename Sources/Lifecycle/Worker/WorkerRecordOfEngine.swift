import Policy

/// All that the engine knows of one worker.
struct WorkerRecord: Codable, Sendable, Equatable {
  let id: WorkerID
  private var profileBox: ProfileBox
  var state = WorkerState.terminated
  /// The state before this one; what a transition comes from.
  var origin = WorkerState.terminated
  var since: Instant
  var cause: Cause
  var lastUsed: Instant
  /// The state that a request set as the goal. `nil`: the policy alone decides.
  var goal: Goal?
  /// Requests to start it, which wait for readiness.
  var starts: [Request.ID] = []
  /// Requests for a memory warning, which wait for its result.
  var warns: [Request.ID] = []
  /// What shadow mode has already reported in this state.
  var notes: ShadowNotes = []
  @CopyOnWriteBox var run = Run()

  // Learned, and kept over relaunches.
  var launchCost: Duration?
  var resumeCost: Duration?
  /// Bytes of image for a byte of footprint, the last time.
  var imageShare: Double?
  var lastExit: ExitStatus?
  var lastShed: ShedRecord?
  var lastMiss: Miss?
  var uses = UseHistory()
  var resumeRate = ResumeRate()
  var earlyWake = EarlyWakeRecord()
  /// The worker's sleeps, if one was too short; and its hibernations.
  var sleeps: SleepRecord?
  var images: SleepRecord?
  /// Whether the worker was in the foreground, or on its way there, when its last run ended; `nil`:
  /// there was no run.
  var wasInFront: Bool?
  /// When the foreground was last requested for it, or it entered without a request; `nil`: never. Of
  /// workers that are started, the one that was requested last gets the foreground, in whatever order
  /// they are up.
  var frontAsked: Instant?
  /// One of the requests to start it asks for the foreground.
  var startsForFront = false
  /// The verbs `shadow` and `enforce`; `nil`: as the policies say.
  var modeByRequest: LifecyclePolicy.Mode?
  var shadow = ShadowRecord()
  /// The verb `protect`. `nil` and not false: journals of earlier versions lack it.
  var isProtectedByRequest: Bool?
  /// `protect` for a time: its end.
  var protectedUntil: Instant?

  var footprintRestarts: FootprintRestarts?

  /// The episode of pressure (or the level of one) in which it was last warned, and that in which it
  /// would have been terminated.
  var warnedIn: PressureEpisode?
  var sparedIn: Int?
  /// `removed` came while the worker was alive.
  var forgetWhenGone = false

  init(id: WorkerID, profile: WorkerProfile, at now: Instant) {
    self.id = id
    profileBox = ProfileBox(profile)
    since = now
    lastUsed = now
    cause = .added
  }

  /// Applies all of a change of state at once.
  mutating func enter(_ next: WorkerState, _ cause: Cause, at now: Instant) {
    origin = state
    state = next
    since = now
    self.cause = cause
    notes = []
    run.lockWatch = nil
    run.watchdog?.entered(next, at: now)
    if next.isTransit {
      run.transit = Transit(inspectAt: now + TransitLimits.limit(moving: memoryToMove))
    } else if run.transit != nil {
      run.transit = nil
    }
  }

  /// What the beginning operation has to write or read, at most.
  private var memoryToMove: ByteCount {
    switch state {
    case .hibernating: footprint
    case .resuming: run.hibernation.footprintBefore ?? footprint
    default: .zero
    }
  }

  mutating func measured(_ size: ByteCount) {
    run.footprint = size
    run.peakFootprint = max(run.peakFootprint, size)
    if state == .suspended { run.isMeasuredAsleep = true }
  }

  var profile: WorkerProfile {
    _read { yield profileBox.value }
    set { profileBox = ProfileBox(newValue) }
  }
  var policy: LifecyclePolicy {
    _read { yield profileBox.value.policy }
  }
  /// Zero until it is measured.
  var footprint: ByteCount { run.footprint ?? .zero }

  /// What hibernation can take out of memory. Offered memory is shared with the daemon and stays; the
  /// rung `purge` takes it, asleep or awake.
  var movable: ByteCount { max(.zero, footprint - run.purgeable) }
}

/// Profiles hardly ever change, and are most of a record: copying a record mustn't copy them.
private final class ProfileBox: Codable, Sendable, Equatable {
  let value: WorkerProfile

  init(_ value: WorkerProfile) { self.value = value }

  init(from decoder: any Decoder) throws { value = try WorkerProfile(from: decoder) }

  func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }

  static func == (left: ProfileBox, right: ProfileBox) -> Bool {
    left === right || left.value == right.value
  }
}

/// What belongs to one run of the program, and is forgotten when it exits.
struct Run: Codable, Sendable, Equatable {
  var footprint: ByteCount?
  var peakFootprint = ByteCount.zero

  var launchAskedAt = Instant.zero
  /// `nil`: its process isn't started yet, or an earlier version has written the journal.
  var spawnedAt: Instant?
  /// `watchdog.launch` after its process was started, where readiness is announced.
  var readyBy: ExtensibleDeadline?
  var isSpawned = false
  /// Started again: it displaces no other worker from the foreground.
  var yieldsFront = false
  var missedReadiness = false
  var lastActivity: Instant?

  var shed: ShedInFlight?
  /// The worker entered the background, and hasn't got the message yet.
  var owesBackgroundShed = false
  var owesWarning = false
  var unanswered: Unanswered?
  var watchdog: WatchdogClock?
  var fruitless: FruitlessWarnings?
  /// `terminate: ask`, and the ladder has chosen it.
  var notice: TerminationNotice?
  /// `nil`: no limits, or nothing measured.
  var limits: FootprintWatch?
  /// The footprints at its suspensions; `nil`: it hasn't been suspended in this run.
  var growth: FootprintGrowth?
  var tasks: [BackgroundTask] = []
  /// Since when the worker asks not to be suspended.
  var heldSince: Instant?
  var lockWatch: LockWatch?
  /// Locks that the worker didn't release in all of the policy's time; a database keeps some for its
  /// whole life. A suspension waits for them once.
  var lastingLocks = 0
  /// Since its launch, or its last wake.
  var runningSince = Instant.zero
  var hasWoken = false
  /// `nil`: it hasn't woken in this run.
  var lastWake: LastWake?
  var retrySuspensionAt: Instant?
  /// In a row, without a sign of use in between; `nil`: none.
  var failedSuspensions: Int?

  var suspendedSince = Instant.zero
  /// The same, not counting heartbeats.
  var restingSince = Instant.zero
  var lastBeat: Instant?
  /// A heartbeat is under way, until then.
  var beatUntil: Instant?
  /// The memory that it has offered, in bytes of its footprint.
  var purgeable = ByteCount.zero
  var isPurging = false
  /// Its footprint has been measured since it was suspended.
  var isMeasuredAsleep = false
  var hibernation = HibernationHistory()
  /// `nil`: the ladder hasn't tried to hibernate it instead of its end.
  var hibernationTries: HibernationTries?
  /// `nil`: the ladder hasn't waited for its readiness.
  var awaitedReadiness: AwaitedReadiness?
  /// The ladder has hibernated it instead of its end, in the foreground; it returns there.
  var returnsToFront: Bool?

  /// What waits for the worker while it sleeps or is about to; and whether that is only its own timer.
  var wakeNeeded: String?
  var wakeIsTimer = false
  /// The worker that it wakes with (`wake_with`), if that is why.
  var wakeWith: WorkerID?
  var tick: TimerTick?
  /// An operation whose outcome is awaited.
  var transit: Transit?
  var retryResumeAt: Instant?
  var failedResumes = 0

  var ending: Ending?
}

/// The state that a request set as the goal, and the requests that wait for it.
struct Goal: Codable, Sendable, Equatable {
  enum Destination: Codable, Hashable, Sendable {
    case foreground, background, suspended, hibernated
    /// Ended with a chance to save its work: a hibernated worker is resumed first.
    case stopped
    /// Ended as jetsam does it.
    case terminated

    var isEnd: Bool { self == .stopped || self == .terminated }
  }

  var destination: Destination
  var cause: Cause
  var requests: [Request.ID]
}

struct ShadowNotes: Codable, OptionSet, Sendable {
  let rawValue: UInt8
  static let suspension = ShadowNotes(rawValue: 1)
  static let hibernation = ShadowNotes(rawValue: 2)
  static let shed = ShadowNotes(rawValue: 4)
  static let watchdog = ShadowNotes(rawValue: 8)
  static let heartbeat = ShadowNotes(rawValue: 16)
  static let purge = ShadowNotes(rawValue: 32)
}
