import Policy

/// The engine's input. The shell turns every signal from the outside world, and the outcome of every
/// directive, into one of these.
public enum Event: Hashable, Sendable {
  /// A worker is declared (by the configuration or `run`), and isn't running.
  case added(WorkerID, WorkerProfile)
  /// The configuration has changed.
  case profileChanged(WorkerID, WorkerProfile)
  /// The worker has opened or closed a channel, so other requests are possible.
  case channelsChanged(WorkerID, canShed: Bool, canAnswer: Bool)
  /// Forget a terminated worker.
  case removed(WorkerID)
  /// The worker is no longer managed, whatever state it was in: it was given back to the program that
  /// supervises it.
  case released(WorkerID)
  /// A worker that an earlier daemon started was found alive, in this state (`foreground`,
  /// `background`, `suspended` or `hibernated`).
  case adopted(WorkerID, WorkerProfile, WorkerState)

  /// The worker's leader (`WorkerProfile.leader`) has brought it to this state at rest. The text says why, if
  /// the leader has said it.
  case moved(WorkerID, WorkerState, String? = nil)

  case request(Request)

  /// Outcome of `launch`.
  case launched(WorkerID)
  case launchFailed(WorkerID, String)
  /// The worker announced readiness.
  case ready(WorkerID)

  /// The worker answered a shed request (or its footprint stopped changing, if its channel can't carry
  /// an answer).
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
  /// Outcome of `resume`, with the time from the directive until the worker ran.
  case resumed(WorkerID, Duration)
  /// `intact`: the worker is as it was before, and the resume may be tried again. Otherwise its memory
  /// can't be verified, and it must be killed.
  case resumeFailed(WorkerID, String, intact: Bool)

  /// All processes of the worker have ended, for whatever reason. Also the outcome of `terminate` and
  /// `kill`.
  case exited(WorkerID, ExitStatus)
  /// Outcome of `inspect`.
  case found(WorkerID, WorkerCondition)

  case footprint(WorkerID, ByteCount)
  case taskBegan(WorkerID, task: String, limit: Duration?)
  case taskEnded(WorkerID, task: String)
  /// A sign of use: traffic, processor time or a lock (`foreground: {mode: activity}`).
  case activity(WorkerID)
  /// The worker used processor time, and there was no traffic.
  case worked(WorkerID)
  /// `X_DORMOUSE_HOLD`: the worker asks not to be suspended now, or withdraws that.
  case hold(WorkerID, Bool)
  /// Outcome of `checkSafePoint`: how many file locks its processes hold.
  case fileLocks(WorkerID, held: Int)
  /// `EXTEND_TIMEOUT_USEC=`: the running deadline ends after this time, counted from now.
  case extendTimeout(WorkerID, Duration)
  /// The worker sends `WATCHDOG=1` at this interval from now on; zero: it sends none.
  case watchdogInterval(WorkerID, Duration)
  /// Outcome of `checkWatchdog`: when the last sign of life came; `nil`: there was none.
  case watchdogSeen(WorkerID, at: Instant?)
  /// `WATCHDOG=trigger`: the worker has found itself broken.
  case watchdogTriggered(WorkerID)
  /// How much memory the worker offers to be taken, asleep or awake: a total, not an addition.
  case purgeableOffered(WorkerID, ByteCount)
  /// Outcome of `purge`: how much was freed. The offer is used up.
  case purged(WorkerID, freed: ByteCount)
  case purgeFailed(WorkerID, String)
  /// The worker runs and doesn't do its work: a liveness probe has failed so often that the worker must
  /// end. The text says how.
  case unhealthy(WorkerID, String)
  /// A connection, data or a signal waits for a sleeping worker. The text says which.
  case wakeNeeded(WorkerID, String)
  /// A timer or time-out of the worker's own is due while it sleeps. The text says which.
  case timerDue(WorkerID, String)

  case memory(MemoryReading)
  /// The disk that holds the images.
  case disk(DiskReading)
  /// A PSI trigger fired, so this level's stall condition holds now.
  case stalled(PressureLevel)
  /// The operator tries the policy: the level is at least this for the given time; `normal`: as
  /// measured again.
  case pressureSet(PressureLevel, for: Duration)

  /// The machine has slept for this time, which is part of the engine's time: deadlines that workers have to meet end
  /// later by it. Sent before any other event after the sleep.
  case machineSlept(Duration)
  /// The instant `nextDeadline` has come.
  case deadline
}

/// A request of a person or program. It is answered by exactly one `Directive.answer`.
public struct Request: Hashable, Sendable {
  public typealias ID = UInt64
  public var id: ID
  public var verb: Verb
  public var worker: WorkerID
  /// When the request was made, if it had to wait for other workers before it came here. `nil`: now.
  public var asked: Instant?
  /// Of `start` and `restart`: what caused it, if it was no person or program.
  public var occasion: Occasion?
  /// Of `protect`: how long; `nil`: until the daemon ends.
  public var lasting: Duration?

  public init(
    id: ID, verb: Verb, worker: WorkerID, asked: Instant? = nil, occasion: Occasion? = nil,
    lasting: Duration? = nil
  ) {
    self.id = id
    self.verb = verb
    self.worker = worker
    self.asked = asked
    self.occasion = occasion
    self.lasting = lasting
  }

  public enum Occasion: String, Codable, Hashable, Sendable, CaseIterable {
    /// `autostart: true`
    case autostart
    /// A connection to one of its `listen` sockets.
    case connection
    /// Another worker depends on it.
    case dependency
    /// `restart:`, after the worker's end.
    case restart
  }

  public enum Verb: String, Codable, Hashable, Sendable, CaseIterable {
    /// Launch; answered when the worker is ready.
    case start
    /// Launch an ended worker again, to where it was: it displaces no other worker from the foreground.
    case restart
    /// End the worker gracefully: a sleeping worker is resumed first, so that it can save its work.
    case stop
    case foreground, background, suspend, hibernate
    /// Resume the worker into the background.
    case wake
    /// End the worker as for lack of memory: a hibernated worker isn't resumed first.
    case terminate
    /// Send a memory warning; the answer says how much it freed.
    case warn
    /// Switch shadow mode for this worker on (`shadow`) or off (`enforce`).
    case shadow, enforce
    /// Don't terminate the worker for lack of memory, for a time or until the daemon ends; leave that to its policy
    /// again.
    case protect, unprotect
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
  /// The size of the file system, and how much of it is free for the daemon.
  public var total: ByteCount
  public var free: ByteCount
  /// All images together.
  public var images: ByteCount
  /// Bytes written to images in the last 24 hours.
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
