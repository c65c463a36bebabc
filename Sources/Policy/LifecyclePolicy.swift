/// The contents of a policy file, as a value. The shipped files are in `Policies/`; their comments
/// are for the operator, the ones here for the programmer.
///
/// Every field has the default that a policy file gets when it omits the key. These are the values
/// of `ios-5`. A configuration that names no policy has another one (`PolicyLibrary.usualPolicy`).
public struct LifecyclePolicy: Codable, Hashable, Sendable {
  public var name: String
  public var mode: Mode = .enforce
  public var memory: MemoryBudget = .host
  public var pressure = PressureRules()
  public var foreground = ForegroundRules()
  public var background = BackgroundRules()
  public var trim = TrimRules()
  public var hibernate = HibernationRules()
  public var watchdog = WatchdogRules()
  public var terminate = TerminationRules()
  public var earlyWake = EarlyWakeRules()
  public var ladder = Ladder()

  public init(name: String = "ios-5") { self.name = name }

  /// `mode:`. In shadow mode the engine decides and reports, and the daemon does nothing.
  public enum Mode: String, Codable, Hashable, Sendable, CaseIterable { case enforce, shadow }

  /// `memory.budget:`. `host` measures the machine. A size simulates a device with that much
  /// memory: what is available is the size less the workers' footprints.
  public enum MemoryBudget: Codable, Hashable, Sendable {
    case host
    case device(ByteCount)
  }
}

/// `foreground:`
public struct ForegroundRules: Codable, Hashable, Sendable {
  public enum Mode: String, Codable, Hashable, Sendable, CaseIterable { case manual, activity }
  /// What decides which worker is in the foreground: a person or program (`manual`), or the
  /// worker's own activity (`activity`).
  public var mode: Mode
  /// The largest number of workers in the foreground. One more sends the one that has been there
  /// longest to the background. `nil`: no limit.
  public var max: Int?
  /// With `mode: activity` only: the time without activity after which a worker is idle.
  public var idleAfter: Duration
  /// With `mode: activity` only: the share of one CPU, 0–100 %, under which a worker counts as
  /// idle.
  public var cpuBelow: Double

  public init(
    mode: Mode = .manual, max: Int? = 1, idleAfter: Duration = .seconds(60), cpuBelow: Double = 2
  ) {
    self.mode = mode
    self.max = max
    self.idleAfter = idleAfter
    self.cpuBelow = cpuBelow
  }
}

/// `background:`
public struct BackgroundRules: Codable, Hashable, Sendable {
  /// The time that a worker has to answer a shed request before the request counts as unanswered.
  public var shedDeadline: Duration = .seconds(5)
  /// The longest time that a background task may keep a worker from being suspended.
  public var taskLimit: Duration = .seconds(600)
  /// The grace in the background before suspension. `nil` (`never`): this policy suspends no
  /// worker.
  public var suspendAfter: Duration? = .seconds(10)
  public var safePoint = SafePointRules()
  /// When sleeping workers are woken at intervals. `nil` (`never`): they aren't.
  public var heartbeat: HeartbeatRules?
  /// A sleeping worker is woken for its own timers and timed waits that are at least this long.
  /// `nil` (`never`): for none.
  public var wakeForTimers: Duration?
}

/// `hibernate.resume`: how hibernated workers get their memory back.
public enum ResumeRule: String, Codable, Hashable, Sendable, CaseIterable {
  /// The method that is faster by the worker's own history.
  case auto
  /// All memory is restored before the worker runs.
  case eager
  /// The memory that the worker needs first is restored before it runs, if the kernel permits that;
  /// the remainder while it runs.
  case lazy = "lazy"
}

/// `hibernate.durability`: when pages may be freed.
public enum DurabilityRule: String, Codable, Hashable, Sendable, CaseIterable {
  /// Pages are freed when the disk has confirmed the image.
  case synced
  /// Pages are freed when the image is in the page cache. This is sooner, but a disk that fails to
  /// write it later costs the worker its memory.
  case cached
}

/// `hibernate.compression.algorithm`: how images are compressed.
public enum CompressionAlgorithm: String, Codable, Hashable, Sendable, CaseIterable {
  /// The smaller images.
  case zstd
  /// The faster ones.
  case lz4
}

/// `hibernate:`
public struct HibernationRules: Codable, Hashable, Sendable {
  /// Whether suspended workers are hibernated at all.
  public var enabled: Bool = true
  /// The largest footprint that is hibernated. `nil` (`unlimited`): any size.
  public var maxFootprint: ByteCount? = .megabytes(16)
  /// The smallest footprint that is hibernated.
  public var minFootprint: ByteCount = .megabytes(1)
  /// The time from suspension to hibernation without pressure. `nil` (`never`): only under pressure
  /// or on request.
  public var after: Duration? = .seconds(30)
  /// A worker of at most this footprint doesn't wait for `after`. `nil` (`never`): all wait.
  public var atOnceUpTo: ByteCount?
  /// A worker whose resume is expected to take longer than its relaunch isn't hibernated.
  public var onlyIfFasterThanRelaunch: Bool = true
  public var resume: ResumeRule = .auto
  /// The time after a resume without another hibernation.
  public var cooldown: Duration = .seconds(45)
  /// A worker that is hibernated for this long without a wake counts as suspended in the order of
  /// termination, and may lose its room on the disk to others under pressure. `nil` (`never`):
  /// neither.
  public var demoteAfter: Duration? = .seconds(86400)
  /// The order of hibernation under pressure, by the first criterion that differs. Costs are those
  /// of resuming, not of relaunching.
  public var order: [TerminationRules.Criterion] = [.footprint]
  public var disk = DiskRules()
  public var compressionAlgorithm: CompressionAlgorithm = .zstd
  /// zstd's level, −7 to 19.
  public var compressionLevel: Int = 1
  /// Whether the last image stays on disk while the worker runs, so that the next one has only what
  /// has changed.
  public var overlay: Bool = true
  /// Whether images are encrypted, with a key that the kernel keeps until the machine shuts down.
  public var encrypt: Bool = false
  /// Whether clean pages of files that no other process uses are dropped from memory, too.
  public var dropFilePages: Bool = false
  /// Whether the pages that a request was seen to need stay in memory.
  public var keepWorkingSet: Bool = false
  public var durability: DurabilityRule = .synced
}

/// `hibernate.disk:`
public struct DiskRules: Codable, Hashable, Sendable {
  /// The size limit of all images together.
  public var budget: ByteCount = .gigabytes(2)
  /// The share of the file system, 0–100 %, that must stay free.
  public var minFreePercent: Double = 5
  /// The limit of bytes written to images in 24 hours.
  public var dailyWrites: ByteCount = .gigabytes(10)
}

/// `watchdog:`
public struct WatchdogRules: Codable, Hashable, Sendable {
  /// What follows from a missed deadline: the worker is terminated, or the miss is only reported.
  public enum OnMiss: String, Codable, Hashable, Sendable, CaseIterable { case terminate, report }
  /// The time from start to readiness (20 s on iPhone OS). Only for workers that announce
  /// readiness.
  public var launch: Duration = .seconds(20)
  /// The time from a request that must be answered to its answer. Only for workers that can answer.
  public var answer: Duration = .seconds(10)
  /// The most that all `EXTEND_TIMEOUT_USEC=` together add to one deadline.
  public var maxExtension: Duration = .seconds(60)
  public var onTimeout: OnMiss = .terminate
}

/// `terminate:`
public struct TerminationRules: Codable, Hashable, Sendable {
  /// What decides between two victims, by the first criterion that differs. Terminated first is the
  /// lower band, the larger footprint, the longest unused, the cheapest to launch again, or the
  /// lowest regret (chance of use soon × cost of coming back / bytes freed).
  public enum Criterion: String, Codable, Hashable, Sendable, CaseIterable {
    case band, footprint, recency
    case relaunchCost = "relaunch_cost"
    case regret
  }
  /// The time from SIGTERM to SIGKILL.
  public var grace: Duration = .seconds(2)
  /// The time for freed memory to show in a measurement, before the next rung or victim.
  public var settle: Duration = .milliseconds(500)
  /// The order of termination. Equal workers are ordered by their last use, then by name.
  public var order: [Criterion] = [.band, .footprint]
  /// Whether the worker may be terminated for lack of memory. `terminate: never` is false.
  public var forMemory: Bool = true
  /// `terminate: ask`: the time from a notice until the worker is terminated for lack of memory.
  /// `nil`: there is no notice.
  public var ask: Duration?

  /// The time of `terminate: ask` without a duration.
  public static let usualAsk = Duration.seconds(5)

  init() {}

  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    grace = try values.decode(Duration.self, forKey: .grace)
    settle = try values.decode(Duration.self, forKey: .settle)
    order = try values.decode([Criterion].self, forKey: .order)
    // Journals of earlier versions lack these two keys.
    forMemory = try values.decodeIfPresent(Bool.self, forKey: .forMemory) ?? true
    ask = try values.decodeIfPresent(Duration.self, forKey: .ask)
  }
}
