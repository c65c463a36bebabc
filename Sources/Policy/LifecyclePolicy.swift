/// Everything that a policy file says, as a value. The shipped files are in `Policies/`; their
/// comments are for the person who tunes them, the ones here for the person who programs.
///
/// Every field has the default that a policy file gets when it leaves the key out; those are the
/// values of `ios-5`.
public struct LifecyclePolicy: Codable, Hashable, Sendable {
  public var name: String
  public var mode: Mode
  public var memory: MemoryBudget
  public var pressure: PressureRules
  public var foreground: ForegroundRules
  public var background: BackgroundRules
  public var hibernate: HibernationRules
  public var watchdog: WatchdogRules
  public var terminate: TerminationRules
  public var earlyWake: EarlyWakeRules
  public var ladder: Ladder

  public init(
    name: String = "ios-5", mode: Mode = .enforce, memory: MemoryBudget = .host,
    pressure: PressureRules = PressureRules(), foreground: ForegroundRules = ForegroundRules(),
    background: BackgroundRules = BackgroundRules(),
    hibernate: HibernationRules = HibernationRules(), watchdog: WatchdogRules = WatchdogRules(),
    terminate: TerminationRules = TerminationRules(),
    earlyWake: EarlyWakeRules = EarlyWakeRules(), ladder: Ladder = Ladder()
  ) {
    self.name = name
    self.mode = mode
    self.memory = memory
    self.pressure = pressure
    self.foreground = foreground
    self.background = background
    self.hibernate = hibernate
    self.watchdog = watchdog
    self.terminate = terminate
    self.earlyWake = earlyWake
    self.ladder = ladder
  }

  /// `mode:`. In shadow mode the engine decides and reports, and the daemon does nothing.
  public enum Mode: String, Codable, Hashable, Sendable, CaseIterable { case enforce, shadow }

  /// `memory.budget:`. `host` measures the machine; a size lets the workers' footprints play a
  /// device with that much memory.
  public enum MemoryBudget: Codable, Hashable, Sendable {
    case host
    case device(ByteCount)
  }
}

/// `foreground:`
public struct ForegroundRules: Codable, Hashable, Sendable {
  public enum Mode: String, Codable, Hashable, Sendable, CaseIterable { case manual, activity }
  /// Who says which worker is in front: a person or program (`manual`), or its own activity.
  public var mode: Mode
  /// Workers in the foreground at once; bringing one more forward sends the one that has been
  /// there longest to the background. `nil`: no limit.
  public var max: Int?
  /// `mode: activity` only: this long without activity means idle.
  public var idleAfter: Duration
  /// `mode: activity` only: CPU share of one core, 0–100 %, under which a worker counts as idle.
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
  /// Time a worker has to answer a shed request before it is taken as unanswered.
  public var shedDeadline: Duration
  /// Longest that a background task may keep a worker from being suspended.
  public var taskLimit: Duration
  /// Grace in the background before suspension. `nil` (`never`): this policy suspends nobody.
  public var suspendAfter: Duration?
  public var safePoint: SafePointRules
  /// `nil` (`never`): who sleeps, sleeps.
  public var heartbeat: HeartbeatRules?
  /// Timers and time-outs of its own for which a sleeping worker is woken: those at least this long.
  /// `nil` (`never`): for none.
  public var wakeForTimers: Duration?

  public init(
    shedDeadline: Duration = .seconds(5), taskLimit: Duration = .seconds(600),
    suspendAfter: Duration? = .seconds(10), safePoint: SafePointRules = SafePointRules(),
    heartbeat: HeartbeatRules? = nil
  ) {
    self.shedDeadline = shedDeadline
    self.taskLimit = taskLimit
    self.suspendAfter = suspendAfter
    self.safePoint = safePoint
    self.heartbeat = heartbeat
  }
}

/// `hibernate.resume`: how hibernated workers get their memory back.
public enum ResumeRule: String, Codable, Hashable, Sendable, CaseIterable {
  /// Whichever of the two the worker's own history says is faster.
  case auto
  /// All of it before it runs.
  case eager
  /// What it wants first, wherever the kernel permits; the rest follows while it runs.
  case lazy = "lazy"
}

/// `hibernate.durability`: when pages may be freed.
public enum DurabilityRule: String, Codable, Hashable, Sendable, CaseIterable {
  /// When the disk has confirmed the image.
  case synced
  /// When the image is in the page cache: sooner, and a disk that fails to write it later costs the
  /// worker its memory.
  case cached
}

/// `hibernate:`
public struct HibernationRules: Codable, Hashable, Sendable {
  /// `false`: suspended workers stay in memory.
  public var enabled: Bool
  /// Largest footprint that is hibernated. `nil` (`unlimited`): any size.
  public var maxFootprint: ByteCount?
  /// Smaller footprints aren't worth the work.
  public var minFootprint: ByteCount
  /// Suspended this long before hibernating without pressure. `nil` (`never`): only under pressure
  /// or on request.
  public var after: Duration?
  /// Don't hibernate a worker whose resume is expected to cost more than its relaunch.
  public var onlyIfFasterThanRelaunch: Bool
  public var resume: ResumeRule
  /// After a resume, no hibernation for this long.
  public var cooldown: Duration
  /// Hibernated for so long without a wake, it counts as suspended in the order of termination, and
  /// gives its place on the disk to others under pressure. `nil` (`never`): it keeps both.
  public var demoteAfter: Duration?
  /// Who is hibernated first under pressure, the first criterion that differs winning. Costs are those
  /// of resuming, not of relaunching.
  public var order: [TerminationRules.Criterion]
  public var disk: DiskRules
  /// zstd level, −7…19.
  public var compressionLevel: Int
  /// The last image stays on disk while the worker runs, and the next one has only what has changed.
  public var overlay: Bool
  /// Images are encrypted, with a key that the kernel keeps until the machine ends.
  public var encrypt: Bool
  /// Clean pages of files that nobody else uses are pushed out of memory, too.
  public var dropFilePages: Bool
  public var durability: DurabilityRule

  public init(
    enabled: Bool = true, maxFootprint: ByteCount? = .megabytes(16),
    minFootprint: ByteCount = .megabytes(1), after: Duration? = .seconds(30),
    onlyIfFasterThanRelaunch: Bool = true, cooldown: Duration = .seconds(45),
    demoteAfter: Duration? = .seconds(86400), order: [TerminationRules.Criterion] = [.footprint],
    disk: DiskRules = DiskRules(), compressionLevel: Int = 1, overlay: Bool = true,
    encrypt: Bool = false, dropFilePages: Bool = false, resume: ResumeRule = .auto,
    durability: DurabilityRule = .synced
  ) {
    self.enabled = enabled
    self.resume = resume
    self.maxFootprint = maxFootprint
    self.minFootprint = minFootprint
    self.after = after
    self.onlyIfFasterThanRelaunch = onlyIfFasterThanRelaunch
    self.cooldown = cooldown
    self.demoteAfter = demoteAfter
    self.order = order
    self.disk = disk
    self.compressionLevel = compressionLevel
    self.overlay = overlay
    self.encrypt = encrypt
    self.dropFilePages = dropFilePages
    self.durability = durability
  }
}

/// `hibernate.disk:`
public struct DiskRules: Codable, Hashable, Sendable {
  /// Most that all images together may hold.
  public var budget: ByteCount
  /// Share of the file system, 0–100 %, that must stay free.
  public var minFreePercent: Double
  /// Most that is written to images in a day.
  public var dailyWrites: ByteCount

  public init(
    budget: ByteCount = .gigabytes(2), minFreePercent: Double = 5,
    dailyWrites: ByteCount = .gigabytes(10)
  ) {
    self.budget = budget
    self.minFreePercent = minFreePercent
    self.dailyWrites = dailyWrites
  }
}

/// `watchdog:`
public struct WatchdogRules: Codable, Hashable, Sendable {
  public enum OnMiss: String, Codable, Hashable, Sendable, CaseIterable { case terminate, report }
  /// From start to readiness (20 s on iPhone OS). Only for workers that announce readiness.
  public var launch: Duration
  /// From a request that must be answered to its answer, for workers that can answer.
  public var answer: Duration
  /// The most that `EXTEND_TIMEOUT_USEC=` adds to one deadline, in all.
  public var maxExtension: Duration
  public var onTimeout: OnMiss

  public init(
    launch: Duration = .seconds(20), answer: Duration = .seconds(10),
    maxExtension: Duration = .seconds(60), onTimeout: OnMiss = .terminate
  ) {
    self.launch = launch
    self.answer = answer
    self.maxExtension = maxExtension
    self.onTimeout = onTimeout
  }
}

/// `terminate:`
public struct TerminationRules: Codable, Hashable, Sendable {
  /// What decides between two victims, the first that differs winning: the lower band goes
  /// first, the bigger footprint, the longest unused, the cheapest to launch again, the one whose
  /// loss is to be regretted the least (chance of use soon × cost of coming back / bytes given back).
  public enum Criterion: String, Codable, Hashable, Sendable, CaseIterable {
    case band, footprint, recency
    case relaunchCost = "relaunch_cost"
    case regret
  }
  /// From SIGTERM to SIGKILL.
  public var grace: Duration
  /// Wait for the freed memory to show before the next rung or victim.
  public var settle: Duration
  public var order: [Criterion]

  public init(
    grace: Duration = .seconds(2), settle: Duration = .milliseconds(500),
    order: [Criterion] = [.band, .footprint]
  ) {
    self.grace = grace
    self.settle = settle
    self.order = order
  }
}
