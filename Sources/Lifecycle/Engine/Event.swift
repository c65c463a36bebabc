import Policy

/// The engine's input. The daemon turns every signal from the outside world, and the outcome of
/// every directive, into one of these.
public enum Event: Hashable, Sendable {
  /// A worker is declared (by the configuration or `run`), and isn't running.
  case added(WorkerID, WorkerProfile)
  /// The worker's configuration has changed.
  case profileChanged(WorkerID, WorkerProfile)
  /// The worker has opened or closed a channel, so other requests are possible.
  case channelsChanged(WorkerID, canShed: Bool, canAnswer: Bool)
  /// The worker isn't declared any more. It is forgotten when it has ended.
  case removed(WorkerID)
  /// The worker is no longer managed, whatever state it is in: it was given back to the program
  /// that supervises it.
  case released(WorkerID)
  /// A worker that an earlier daemon started was found alive, in this state: `foreground`,
  /// `background`, `suspended` or `hibernated`.
  case adopted(WorkerID, WorkerProfile, WorkerState)

  /// The worker's leader (`WorkerProfile.leader`) has brought it to this state: `foreground`,
  /// `background`, `suspended` or `hibernated`. The text is the leader's reason, if it gave one.
  case moved(WorkerID, WorkerState, String? = nil)

  /// A person or program requests something of a worker.
  case request(Request)

  /// The outcome of `launch`: the process was started.
  case launched(WorkerID)
  /// The outcome of `launch`: the process couldn't be started. The text says why.
  case launchFailed(WorkerID, String)
  /// The worker announced readiness.
  case ready(WorkerID)

  /// The worker answered a shed request. If its channel can't carry an answer, its footprint has
  /// stopped changing.
  case shedAnswered(WorkerID)
  /// The outcome of `finishShed`: the footprints before and after the request.
  case shedFinished(WorkerID, before: ByteCount, after: ByteCount)

  /// The outcome of `suspend`: the worker doesn't run any more.
  case suspended(WorkerID)
  /// The outcome of `suspend`: the worker still runs. The text says why.
  case suspendFailed(WorkerID, String)
  /// The outcome of `suspend`: the worker still runs, because nothing but its own timers gives it
  /// work, and its policy trims it. The text says so.
  case staysAwake(WorkerID, String)
  /// The outcome of `hibernate`: the worker's memory is on disk.
  case hibernated(WorkerID, HibernationResult)
  /// The outcome of `hibernate`: nothing was touched, or everything was restored, and the worker is
  /// suspended and intact. `permanent`: it can't be hibernated at all, and isn't tried again until
  /// it is relaunched.
  case hibernateFailed(WorkerID, String, permanent: Bool)
  /// The outcome of `resume`, with the time from the directive until the worker ran.
  case resumed(WorkerID, Duration)
  /// The outcome of `resume`: it failed, for the reason in the text. `intact`: the worker is as it
  /// was before, and the resume may be tried again. Otherwise its memory can't be verified, and it
  /// must be killed.
  case resumeFailed(WorkerID, String, intact: Bool)

  /// All processes of the worker have ended, for whatever reason. This is the outcome of
  /// `terminate`, `abort` and `kill`, too.
  case exited(WorkerID, ExitStatus)
  /// The outcome of `inspect`.
  case found(WorkerID, WorkerCondition)

  /// The outcome of `measure`, or an unrequested measurement.
  case footprint(WorkerID, ByteCount)
  /// How much of the worker's footprint is out of RAM: in swap, or in the image of a trim. It comes
  /// before the `footprint` of the same measurement, if the worker has such memory, or had some at
  /// the measurement before.
  case swapped(WorkerID, ByteCount)
  /// The outcome of `trim`: memory has left RAM.
  case trimmed(WorkerID, TrimResult)
  /// The outcome of `trim`: the worker is as it was. The text says why. `permanent`: it can't be
  /// trimmed at all, and isn't tried again until it is relaunched.
  case trimFailed(WorkerID, String, permanent: Bool)
  /// All memory that the last trim moved to an image came back, although nothing asked for it. The
  /// text is the reason as a clause, such as `it forks often`.
  case trimLost(WorkerID, String)
  /// The outcome of `fill`, with the memory that is still in swap.
  case filled(WorkerID, swapped: ByteCount)
  /// The outcome of `fill`: the worker's memory is where it was. The text says why.
  case fillFailed(WorkerID, String)
  /// The worker began a background task. `limit`: the time that it asked for; `nil`: the policy's.
  case taskBegan(WorkerID, task: String, limit: Duration?)
  /// The worker ended a background task.
  case taskEnded(WorkerID, task: String)
  /// The worker is in use: traffic, processor time or a lock (`foreground: {mode: activity}`).
  case activity(WorkerID)
  /// The worker used processor time, and there was no traffic.
  case worked(WorkerID)
  /// The worker asks not to be suspended now, or withdraws that (`X_DORMOUSE_HOLD`).
  case hold(WorkerID, Bool)
  /// The outcome of `checkSafePoint`: how many file locks the worker's processes hold.
  case fileLocks(WorkerID, held: Int)
  /// The worker extends its running deadline to this time from now (`EXTEND_TIMEOUT_USEC=`).
  case extendTimeout(WorkerID, Duration)
  /// The worker sends `WATCHDOG=1` at this interval from now on. Zero: it sends none.
  case watchdogInterval(WorkerID, Duration)
  /// The outcome of `checkWatchdog`: when the last `WATCHDOG=1` came. `nil`: there was none.
  case watchdogSeen(WorkerID, at: Instant?)
  /// The worker reports that it is broken (`WATCHDOG=trigger`).
  case watchdogTriggered(WorkerID)
  /// How much memory the worker offers to be freed, asleep or awake. It is a total, not an
  /// addition.
  case purgeableOffered(WorkerID, ByteCount)
  /// The outcome of `purge`: how much was freed. The offer is used up.
  case purged(WorkerID, freed: ByteCount)
  /// The outcome of `purge`: nothing was freed. The text says why.
  case purgeFailed(WorkerID, String)
  /// The worker runs and doesn't do its work: a liveness probe has failed so often that the worker
  /// must end. The text says how.
  case unhealthy(WorkerID, String)
  /// A connection, data or a signal waits for a sleeping worker. The text says which.
  case wakeNeeded(WorkerID, String)
  /// A timer or a timed wait of a sleeping worker is due. The text says which.
  case timerDue(WorkerID, String)

  /// The machine's memory was measured.
  case memory(MemoryReading)
  /// The disk that holds the images was measured.
  case disk(DiskReading)
  /// A PSI trigger fired, so this level's stall condition holds now.
  case stalled(PressureLevel)
  /// The operator tries the policy (`pressure set`): the level is at least this for the given time.
  /// `normal` ends the trial.
  case pressureSet(PressureLevel, for: Duration)

  /// The machine has slept for this time, which is part of the engine's time. Deadlines that
  /// workers have to meet move by it. Sent before any other event after the sleep.
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
  /// When the request was made, if it had to wait for other workers. `nil`: now.
  public var asked: Instant?
  /// What caused a `start` or `restart` that no person or program requested.
  public var occasion: Occasion?
  /// How long a `protect` lasts. `nil`: until the daemon ends.
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

  /// What causes a start without a request.
  public enum Occasion: String, Codable, Hashable, Sendable, CaseIterable {
    /// `autostart: true`
    case autostart
    /// A connection to one of the worker's `listen` sockets.
    case connection
    /// Another worker depends on it.
    case dependency
    /// `restart:` after the worker's end.
    case restart
  }

  /// What is requested. The raw values are the verbs of the command line.
  public enum Verb: String, Codable, Hashable, Sendable, CaseIterable {
    /// Launch the worker. Answered when it is ready.
    case start
    /// Launch an ended worker again, to the state where it was. It displaces no other worker from
    /// the foreground.
    case restart
    /// End the worker gracefully. A sleeping worker is resumed first, so that it can save its work.
    case stop
    /// Bring the worker to this state.
    case foreground, background, suspend, hibernate
    /// Resume the worker into the background.
    case wake
    /// End the worker as for lack of memory. A hibernated worker isn't resumed first.
    case terminate
    /// Send a memory warning. The answer says how much it freed.
    case warn
    /// Move the memory that a running worker doesn't use out of RAM. The answer says how much.
    case trim
    /// Move all memory of a trimmed worker back into RAM.
    case fill
    /// Switch shadow mode for this worker on (`shadow`) or off (`enforce`).
    case shadow, enforce
    /// Don't terminate the worker for lack of memory, for a time or until the daemon ends
    /// (`protect`). Let the policy decide that again (`unprotect`).
    case protect, unprotect
  }
}

/// The machine's memory at one moment.
public struct MemoryReading: Codable, Hashable, Sendable {
  public var total: ByteCount
  /// What could be allocated without swapping (such as MemAvailable in /proc/meminfo).
  public var available: ByteCount
  /// The PSI averages over about the policy's window, 0–100 %. `nil`: the kernel has no PSI.
  public var someStall: Double?
  public var fullStall: Double?
  /// The swap that is free.
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
  /// The size of the file system.
  public var total: ByteCount
  /// How much of the file system is free for the daemon.
  public var free: ByteCount
  /// The size of all images together.
  public var images: ByteCount
  /// The bytes written to images in the last 24 hours.
  public var writtenToday: ByteCount

  public init(total: ByteCount, free: ByteCount, images: ByteCount, writtenToday: ByteCount) {
    self.total = total
    self.free = free
    self.images = images
    self.writtenToday = writtenToday
  }
}

/// What a trim achieved.
public struct TrimResult: Codable, Hashable, Sendable {
  /// The part of the footprint that was in RAM before the trim.
  public var residentBefore: ByteCount
  /// The part of the footprint that was in RAM right after the trim.
  public var residentAfter: ByteCount
  /// The memory that was in swap, or in the trim's image, right after the trim.
  public var swapped: ByteCount
  /// How much of `swapped` was in the image. `nil`: the trim wrote none.
  public var inImage: ByteCount?
  /// The time from the directive to the outcome.
  public var duration: Duration
  /// The longest time for which the worker stood still. Zero: it wasn't stopped.
  public var stoppedFor: Duration

  public init(
    residentBefore: ByteCount, residentAfter: ByteCount, swapped: ByteCount,
    inImage: ByteCount? = nil, duration: Duration, stoppedFor: Duration = .zero
  ) {
    self.residentBefore = residentBefore
    self.residentAfter = residentAfter
    self.swapped = swapped
    self.inImage = inImage
    self.duration = duration
    self.stoppedFor = stoppedFor
  }

  /// How much memory has left RAM.
  public var freed: ByteCount { max(.zero, residentBefore - residentAfter) }
}

/// What a hibernation achieved.
public struct HibernationResult: Hashable, Sendable {
  public var footprintBefore: ByteCount
  /// What stays in memory: pages that can't be moved.
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
