import Policy

/// What the engine is told. The shell turns every signal from the outside world, and the outcome
/// of every directive, into one of these.
public enum Event: Hashable, Sendable {
  /// A worker is known (from the configuration or `run`), and isn't running.
  case added(WorkerID, WorkerProfile)
  /// The configuration has changed.
  case profileChanged(WorkerID, WorkerProfile)
  /// What it can be asked for has changed: it has opened or closed a channel.
  case channelsChanged(WorkerID, canShed: Bool, canAnswer: Bool)
  /// Forget a terminated worker.
  case removed(WorkerID)
  /// It lives on without us, whatever state it was in: it was given back to whoever supervises it.
  case released(WorkerID)
  /// A worker that an earlier daemon started was found alive, in this state (`foreground`,
  /// `background`, `suspended` or `hibernated`).
  case adopted(WorkerID, WorkerProfile, WorkerState)

  /// Its leader (`WorkerProfile.leader`) has brought it to this state at rest.
  case moved(WorkerID, WorkerState)

  case request(Request)

  /// Outcome of `launch`.
  case launched(WorkerID)
  case launchFailed(WorkerID, String)
  /// The worker announced readiness.
  case ready(WorkerID)

  /// The worker answered a shed request (or its footprint came to rest, where its channel can't
  /// carry an answer).
  case shedAnswered(WorkerID)
  /// Outcome of `finishShed`.
  case shedFinished(WorkerID, before: ByteCount, after: ByteCount)

  case suspended(WorkerID)
  case suspendFailed(WorkerID, String)
  case hibernated(WorkerID, HibernationResult)
  /// Nothing was touched, or everything was put back: the worker is suspended and intact.
  /// `permanent`: the worker is of a kind that can't be hibernated; don't try again until it is
  /// relaunched.
  case hibernateFailed(WorkerID, String, permanent: Bool)
  /// Outcome of `resume`; how long it took from the directive until the worker ran.
  case resumed(WorkerID, Duration)
  /// `intact`: it is as it was before, and resuming may be tried again. Otherwise its memory
  /// can't be verified, and it must be killed.
  case resumeFailed(WorkerID, String, intact: Bool)

  /// The worker is gone, all of it: whoever ended it. Also the outcome of `terminate` and `kill`.
  case exited(WorkerID, ExitStatus)
  /// Outcome of `inspect`.
  case found(WorkerID, WorkerCondition)

  case footprint(WorkerID, ByteCount)
  case taskBegan(WorkerID, task: String, limit: Duration?)
  case taskEnded(WorkerID, task: String)
  /// Traffic, processor time, a lock: something was done (`foreground: {mode: activity}`).
  case activity(WorkerID)
  /// It used processor time, and there was no traffic.
  case worked(WorkerID)
  /// `X_DORMOUSE_HOLD`: the worker asks not to be suspended now, or takes that back.
  case hold(WorkerID, Bool)
  /// Outcome of `checkSafePoint`: how many file locks its processes hold.
  case fileLocks(WorkerID, held: Int)
  /// `EXTEND_TIMEOUT_USEC=`: the deadline that is running, so long from now.
  case extendTimeout(WorkerID, Duration)
  /// It sends `WATCHDOG=1` this often from now on; zero: it doesn't.
  case watchdogInterval(WorkerID, Duration)
  /// Outcome of `checkWatchdog`: when the last sign of life came; `nil`: none has.
  case watchdogSeen(WorkerID, at: Instant?)
  /// `WATCHDOG=trigger`: it has found itself broken.
  case watchdogTriggered(WorkerID)
  /// How much memory the worker offers to be taken, asleep or awake: a total, not an addition.
  case purgeableOffered(WorkerID, ByteCount)
  /// Outcome of `purge`: so much was given back. Whatever was on offer is gone.
  case purged(WorkerID, freed: ByteCount)
  case purgeFailed(WorkerID, String)
  /// It runs and doesn't do its work: a probe of liveness has failed so often that it must end. The
  /// text says how.
  case unhealthy(WorkerID, String)
  /// Something waits for a sleeping worker: a connection, data, a signal. The text says what.
  case wakeNeeded(WorkerID, String)
  /// A timer or time-out of its own is due, while it sleeps. The text says which.
  case timerDue(WorkerID, String)

  case memory(MemoryReading)
  /// The disk that holds the images.
  case disk(DiskReading)
  /// A PSI trigger fired, so this level's stall condition holds now.
  case stalled(PressureLevel)
  /// Somebody tries the policy: the level is at least this for so long, or, `normal`, as measured again.
  case pressureSet(PressureLevel, for: Duration)

  /// `nextDeadline` has come.
  case deadline
}

/// A person's or program's wish. It is answered by exactly one `Directive.answer`.
public struct Request: Hashable, Sendable {
  public typealias ID = UInt64
  public var id: ID
  public var verb: Verb
  public var worker: WorkerID
  /// When it was made, where it had to wait for other workers before it came here. `nil`: now.
  public var asked: Instant?
  /// Of `start` and `restart`: what asks, where it is no person or program.
  public var occasion: Occasion?

  public init(
    id: ID, verb: Verb, worker: WorkerID, asked: Instant? = nil, occasion: Occasion? = nil
  ) {
    self.id = id
    self.verb = verb
    self.worker = worker
    self.asked = asked
    self.occasion = occasion
  }

  public enum Occasion: String, Codable, Hashable, Sendable, CaseIterable {
    /// `autostart: true`
    case autostart
    /// A connection to one of its `listen` sockets.
    case connection
    /// Another worker depends on it.
    case dependency
    /// `restart:`, after its end.
    case restart
  }

  public enum Verb: String, Codable, Hashable, Sendable, CaseIterable {
    /// Launch; answered when the worker is ready.
    case start
    /// Launch again what has ended, to where it was: it displaces no other worker from the foreground.
    case restart
    /// End gracefully: a sleeping worker is resumed first, so that it can save its work.
    case stop
    case foreground, background, suspend, hibernate
    /// Resume into the background.
    case wake
    /// End as jetsam would: a hibernated worker isn't resumed first.
    case terminate
    /// Send a memory warning; answered with what it gave back.
    case warn
    /// Only tell from now on what the policy would do with this worker; and do it again.
    case shadow, enforce
  }
}

/// The machine's memory, at one moment.
public struct MemoryReading: Codable, Hashable, Sendable {
  public var total: ByteCount
  /// What could be allocated without swapping (MemAvailable and the like).
  public var available: ByteCount
  /// PSI averages over about the policy's window, 0–100 %; `nil` where the kernel has no PSI.
  public var someStall: Double?
  public var fullStall: Double?
  /// Swap that is free.
  public var swapFree: ByteCount

  public init(
    total: ByteCount, available: ByteCount, someStall: Double? = nil, fullStall: Double? = nil,
    swapFree: ByteCount = .zero
  ) {
    self.total = total
    self.available = available
    self.someStall = someStall
    self.fullStall = fullStall
    self.swapFree = swapFree
  }
}

/// The disk that holds the images, at one moment.
public struct DiskReading: Codable, Hashable, Sendable {
  /// Of the file system: its size, and what is free of it for us.
  public var total: ByteCount
  public var free: ByteCount
  /// All images together.
  public var images: ByteCount
  /// To images, in the last 24 hours.
  public var writtenToday: ByteCount

  public init(total: ByteCount, free: ByteCount, images: ByteCount, writtenToday: ByteCount) {
    self.total = total
    self.free = free
    self.images = images
    self.writtenToday = writtenToday
  }
}

/// What a hibernation achieved.
public struct HibernationResult: Hashable, Sendable {
  public var footprintBefore: ByteCount
  /// What stays in memory: pages that can't move.
  public var footprintAfter: ByteCount
  public var imageSize: ByteCount
  public var duration: Duration

  public init(
    footprintBefore: ByteCount, footprintAfter: ByteCount, imageSize: ByteCount,
    duration: Duration
  ) {
    self.footprintBefore = footprintBefore
    self.footprintAfter = footprintAfter
    self.imageSize = imageSize
    self.duration = duration
  }
}
