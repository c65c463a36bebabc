import Lifecycle

/// The simulated processes of a worker in a fleet.
struct FleetWorker {
  enum Body { case absent, starting, running, frozen, evicted }

  let id: WorkerID
  /// The footprint after warm-up, in bytes.
  let footprint: Int64
  let leak: Int64
  let launch: Duration
  let profile: WorkerProfile

  var body = Body.absent
  /// The bytes of RAM that it uses now.
  var resident: Int64 = 0
  /// The bytes that trims have moved out of RAM.
  var trimmed: Int64 = 0
  /// How many of the trimmed bytes come back with its next use.
  var returning: Int64 = 0
  /// The bytes of memory that it used before it was hibernated.
  var evicted: Int64 = 0
  var image: Int64 = 0
  var uses = 0
  var runsSince: Int64 = 0
  /// The number of launches, by which steps of an earlier run are recognized and dropped.
  var life: Int32 = 0
  /// The uses that wait until the worker runs, and the worker's state when they arrived.
  var waiting: [Waiting] = []
  /// How often the OOM killer has ended it since it last served a use.
  var kernelKills = 0
  var lastSign: Int64 = .min / 2
  var busyUntil: Int64 = 0
  /// The number of uses in progress that are long enough to be declared as a task.
  var longUses = 0
  var account = FleetAccount()
  /// The moment until which the time has been added to the account.
  var accountedUntil: Int64 = 0

  struct Waiting {
    var at: Int64
    var stateAtUse: FleetReport.StateAtUse
    var duration: Int32
    /// True if no client waits, because it is the worker's own work.
    var isSelfInitiated = false
  }

  /// The time after which a client tries again: 1 s, twice as long each time, and at most a minute.
  /// Otherwise a machine with too little memory would only start workers that it can't keep.
  var retryDelay: Int64 { min(1 << min(Int64(kernelKills), 6), 60) * 1_000_000_000 }

  /// The bytes of its memory, in RAM or trimmed.
  var memory: Int64 { resident + trimmed }

  /// Adds the memory that was used and saved until now to the account.
  mutating func addElapsedTime(at now: Int64) {
    let time = Double(now - accountedUntil) / 1e9
    accountedUntil = now
    account.byteSeconds += Double(resident) * time
    account.trimmedByteSeconds += Double(trimmed) * time
    if body == .evicted { account.savedByteSeconds += Double(max(0, evicted - resident)) * time }
  }
}

/// The memory and the costs of one worker of a fleet.
public struct FleetAccount: Sendable, Hashable {
  /// The integral over time of the memory that it used.
  public var byteSeconds = 0.0
  /// The integral over time of the memory that hibernation saved.
  public var savedByteSeconds = 0.0
  /// The integral over time of the memory that was out of RAM after trims.
  public var trimmedByteSeconds = 0.0
  /// The number of trims.
  public var trims = 0
  /// The number of resumes, for clients and for its own timers.
  public var wakes = 0
  /// The time in seconds that its clients waited for resumes, launches and trimmed memory.
  public var waitSeconds = 0.0
  /// The size of all images that were written for it.
  public var writtenBytes: Int64 = 0

  public init() {}
}
