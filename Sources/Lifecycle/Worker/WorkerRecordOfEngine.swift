import Policy

/// All that the engine knows about one worker.
struct WorkerRecord: Codable, Sendable, Equatable {
  let id: WorkerID
  /// A profile hardly ever changes, and is the largest component: copies of the record share it.
  @CopyOnWriteBox private var profileBox: WorkerProfile
  var state = WorkerState.terminated
  /// The state before this one. A transition that fails returns to it.
  var origin = WorkerState.terminated
  var since: Instant
  /// The state before the last transition that takes time, while that is under way or has failed.
  /// `nil`: there was none since, or an earlier version has written the journal.
  private var settled: SettledState?
  var cause: Cause
  var lastUsed: Instant
  /// The state that a request set as the goal. `nil`: the policy alone decides.
  var goal: Goal?
  /// Requests to start the worker that wait for its readiness.
  var starts: [Request.ID] = []
  /// Requests for a memory warning that wait for its result.
  var warns: [Request.ID] = []
  /// What shadow mode has already reported in this state.
  var notes: ShadowNotes = []
  @CopyOnWriteBox var run = Run()

  // The properties from here on are learned, and kept over relaunches.
  var launchCost: Duration?
  var resumeCost: Duration?
  /// Bytes of image for each byte of footprint, in the last hibernation.
  var imageShare: Double?
  var lastExit: ExitStatus?
  var lastShed: ShedRecord?
  var lastMiss: Miss?
  var uses = UseHistory()
  var resumeRate = ResumeRate()
  var earlyWake = EarlyWakeRecord()
  /// The worker's last sleeps. `nil`: none was counted yet.
  var sleeps: SleepRecord?
  /// The worker's last hibernations whose image was read again. `nil`: none was counted yet.
  var images: SleepRecord?
  /// Whether the worker was in the foreground, or on its way there, when its last run ended. `nil`:
  /// there was no run.
  var wasInFront: Bool?
  /// When the foreground was last requested for it, or it entered without a request. `nil`: never.
  /// Of workers that are started, the one that was requested last gets the foreground, in whatever
  /// order they become ready.
  var frontAsked: Instant?
  /// Whether one of the requests to start it asks for the foreground.
  var startsForFront = false
  /// The mode set by the verbs `shadow` and `enforce`. `nil`: the policies decide.
  var modeByRequest: LifecyclePolicy.Mode?
  var shadow = ShadowRecord()
  /// Set by the verb `protect`. `nil` and not false: journals of earlier versions lack it.
  var isProtectedByRequest: Bool?
  /// The end of a `protect` with a time limit.
  var protectedUntil: Instant?

  var footprintRestarts: FootprintRestarts?

  /// The episode of pressure, and the level, in which the worker was last warned.
  var warnedIn: PressureEpisode?
  /// The episode in which shadow mode reported that the worker would have been terminated.
  var sparedIn: Int?
  /// Whether `removed` came while the worker was alive.
  var forgetWhenGone = false

  init(id: WorkerID, profile: WorkerProfile, at now: Instant) {
    self.id = id
    _profileBox = CopyOnWriteBox(wrappedValue: profile)
    since = now
    lastUsed = now
    cause = .added
  }

  /// Applies everything that belongs to a change of state.
  mutating func enter(_ next: WorkerState, _ cause: Cause, at now: Instant) {
    if next.isTransit {
      if !state.isTransit { settled = SettledState(state: state, since: stateSince) }
    } else if next != settled?.state {
      settled = nil
    }
    origin = state
    state = next
    since = now
    self.cause = cause
    notes = []
    run.lockWatch = nil
    run.watchdog?.entered(next, at: now)
    if next == .hibernated { run.trim?.didHibernate() }
    if next.isTransit {
      run.transit = Transit(inspectAt: now + TransitLimits.limit(moving: memoryToMove))
    } else if run.transit != nil {
      run.transit = nil
    }
  }

  /// When the worker entered its state. A transition that has failed doesn't count.
  var stateSince: Instant {
    settled.flatMap { $0.state == state ? $0.since : nil } ?? since
  }

  /// The most that the beginning operation has to write or read.
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
    _read { yield profileBox }
    set { profileBox = newValue }
  }
  var policy: LifecyclePolicy {
    _read { yield profileBox.policy }
  }
  /// The last measured footprint; zero until it is measured.
  var footprint: ByteCount { run.footprint ?? .zero }

  /// What hibernation can move out of RAM. Offered memory is shared with the daemon and stays; the
  /// rung `purge` frees it, asleep or awake.
  var movable: ByteCount { max(.zero, resident - run.purgeable) }
}

/// A state that isn't a transition, and when the worker entered it.
private struct SettledState: Codable, Equatable {
  var state: WorkerState
  var since: Instant
}

/// What belongs to one run of the program. It is dropped when the run ends.
struct Run: Codable, Sendable, Equatable {
  var footprint: ByteCount?
  var peakFootprint = ByteCount.zero

  var launchAskedAt = Instant.zero
  /// When its process was started. `nil`: not yet, or an earlier version has written the journal.
  var spawnedAt: Instant?
  /// The deadline for readiness: `watchdog.launch` after its process was started. `nil`: it doesn't
  /// announce readiness.
  var readyBy: ExtensibleDeadline?
  var isSpawned = false
  /// Whether it was started again: it displaces no other worker from the foreground.
  var yieldsFront = false
  var missedReadiness = false
  var lastActivity: Instant?

  var shed: ShedInFlight?
  /// The worker entered the background, and hasn't got the message about it yet.
  var owesBackgroundShed = false
  var owesWarning = false
  var unanswered: Unanswered?
  var watchdog: WatchdogClock?
  var fruitless: FruitlessWarnings?
  /// The ladder has chosen it, and the policy asks first (`terminate: ask`).
  var notice: TerminationNotice?
  /// How long it has been over each of its limits. `nil`: there are no limits, or nothing is
  /// measured.
  var limits: FootprintWatch?
  /// The footprints at its suspensions. `nil`: it hasn't been suspended in this run.
  var growth: FootprintGrowth?
  var tasks: [BackgroundTask] = []
  /// Since when the worker asks not to be suspended.
  var heldSince: Instant?
  var lockWatch: LockWatch?
  /// The number of locks that the worker didn't release in the policy's time. A database keeps some
  /// for its whole life. A suspension waits for them once.
  var lastingLocks = 0
  /// When the worker began to run: its launch, or its last wake.
  var runningSince = Instant.zero
  var hasWoken = false
  /// The last wake in this run. `nil`: there was none.
  var lastWake: LastWake?
  var retrySuspensionAt: Instant?
  /// Failed suspensions in a row, without a sign of use in between. `nil`: none.
  var failedSuspensions: Int?
  /// Why its policy trims it instead of suspending it for idleness: it works by its own timers.
  /// `nil`: that isn't known.
  var staysAwake: String?

  var suspendedSince = Instant.zero
  /// When the worker fell asleep. Neither a heartbeat nor a wake by its own timer changes it.
  var restingSince = Instant.zero
  var lastBeat: Instant?
  /// The end of the heartbeat that is under way.
  var beatUntil: Instant?
  /// The memory that it has offered to be freed.
  var purgeable = ByteCount.zero
  var isPurging = false
  /// Whether its footprint has been measured since it was suspended.
  var isMeasuredAsleep = false
  /// `nil`: the worker wasn't trimmed in this run, and had all memory in RAM.
  var trim: TrimHistory?
  var hibernation = HibernationHistory()
  /// The ladder's attempts to hibernate it instead of terminating it. `nil`: none.
  var hibernationTries: HibernationTries?
  /// The wait of the ladder for its readiness. `nil`: there was none.
  var awaitedReadiness: AwaitedReadiness?
  /// The ladder has hibernated it, in the foreground, instead of terminating it. It returns there.
  var returnsToFront: Bool?

  /// What waits for the worker while it sleeps or is being suspended.
  var wakeNeeded: String?
  /// Whether `wakeNeeded` is only one of the worker's own timers.
  var wakeIsTimer = false
  /// The worker that it wakes with (`wake_with`), if that is the reason.
  var wakeWith: WorkerID?
  var tick: TimerTick?
  /// The operation whose outcome is awaited.
  var transit: Transit?
  var retryResumeAt: Instant?
  var failedResumes = 0

  var ending: Ending?
}

/// The state that a request set as the goal, and the requests that wait for it.
struct Goal: Codable, Sendable, Equatable {
  enum Destination: Codable, Hashable, Sendable {
    case foreground, background, suspended, hibernated
    /// The worker has ended, with a chance to save its work: a hibernated worker is resumed first.
    case stopped
    /// The worker has ended as for lack of memory.
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
  // Earlier versions have used 4 and 8.
  static let heartbeat = ShadowNotes(rawValue: 16)
  static let purge = ShadowNotes(rawValue: 32)
  static let trim = ShadowNotes(rawValue: 64)
}
