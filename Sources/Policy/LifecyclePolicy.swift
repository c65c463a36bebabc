/// Everything that a policy file says, as a value. The shipped files are in `Policies/`; their
/// comments are for the person who tunes them, the ones here for the person who programs.
///
/// Every field has the default that a policy file gets when it leaves the key out; those are the
/// values of `ios-5`.
public struct LifecyclePolicy: Hashable, Sendable {
  public var name: String
  public var mode: Mode
  public var memory: MemoryBudget
  public var pressure: PressureRules
  public var foreground: ForegroundRules
  public var background: BackgroundRules
  public var hibernate: HibernationRules
  public var watchdog: WatchdogRules
  public var terminate: TerminationRules
  public var ladder: Ladder

  public init(
    name: String = "ios-5", mode: Mode = .enforce, memory: MemoryBudget = .host,
    pressure: PressureRules = PressureRules(), foreground: ForegroundRules = ForegroundRules(),
    background: BackgroundRules = BackgroundRules(),
    hibernate: HibernationRules = HibernationRules(), watchdog: WatchdogRules = WatchdogRules(),
    terminate: TerminationRules = TerminationRules(), ladder: Ladder = Ladder()
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
    self.ladder = ladder
  }

  /// `mode:`. In shadow mode the engine decides and reports, and the daemon does nothing.
  public enum Mode: String, Hashable, Sendable, CaseIterable { case enforce, shadow }

  /// `memory.budget:`. `host` measures the machine; a size lets the workers' footprints play a
  /// device with that much memory.
  public enum MemoryBudget: Hashable, Sendable {
    case host
    case device(ByteCount)
  }
}

/// `foreground:`
public struct ForegroundRules: Hashable, Sendable {
  public enum Chooser: String, Hashable, Sendable, CaseIterable { case manual, activity }
  /// Who says which worker is in front: a person or program (`manual`), or its own activity.
  public var by: Chooser
  /// Workers in the foreground at once; bringing one more forward sends the one that has been
  /// there longest to the background. `nil`: no limit.
  public var max: Int?
  /// `by: activity` only: this long without activity means idle.
  public var idleAfter: Duration
  /// `by: activity` only: CPU share of one core, 0–100 %, under which a worker counts as idle.
  public var cpuBelow: Double

  public init(
    by: Chooser = .manual, max: Int? = 1, idleAfter: Duration = .seconds(60), cpuBelow: Double = 2
  ) {
    self.by = by
    self.max = max
    self.idleAfter = idleAfter
    self.cpuBelow = cpuBelow
  }
}

/// `background:`
public struct BackgroundRules: Hashable, Sendable {
  /// Time a worker has to answer a shed request before it is taken as unanswered.
  public var shedDeadline: Duration
  /// Longest that a background task may keep a worker from being suspended.
  public var taskLimit: Duration
  /// Grace in the background before suspension. `nil` (`never`): this policy suspends nobody.
  public var suspendAfter: Duration?

  public init(
    shedDeadline: Duration = .seconds(5), taskLimit: Duration = .seconds(600),
    suspendAfter: Duration? = .seconds(10)
  ) {
    self.shedDeadline = shedDeadline
    self.taskLimit = taskLimit
    self.suspendAfter = suspendAfter
  }
}

/// `hibernate.resume`: how hibernated workers get their memory back.
public enum ResumeRule: String, Hashable, Sendable, CaseIterable {
  /// Whichever of the two the worker's own history says is faster.
  case auto
  /// All of it before it runs.
  case eager
  /// What it wants first, wherever the kernel permits; the rest follows while it runs.
  case hotFirst = "hot_first"
}

/// `hibernate:`
public struct HibernationRules: Hashable, Sendable {
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
  public var disk: DiskRules
  /// zstd level, −7…19.
  public var compressionLevel: Int

  public init(
    enabled: Bool = true, maxFootprint: ByteCount? = .megabytes(16),
    minFootprint: ByteCount = .megabytes(1), after: Duration? = .seconds(30),
    onlyIfFasterThanRelaunch: Bool = true, cooldown: Duration = .seconds(45),
    disk: DiskRules = DiskRules(), compressionLevel: Int = 1, resume: ResumeRule = .auto
  ) {
    self.enabled = enabled
    self.resume = resume
    self.maxFootprint = maxFootprint
    self.minFootprint = minFootprint
    self.after = after
    self.onlyIfFasterThanRelaunch = onlyIfFasterThanRelaunch
    self.cooldown = cooldown
    self.disk = disk
    self.compressionLevel = compressionLevel
  }
}

/// `hibernate.disk:`
public struct DiskRules: Hashable, Sendable {
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
public struct WatchdogRules: Hashable, Sendable {
  public enum OnMiss: String, Hashable, Sendable, CaseIterable { case terminate, report }
  /// From start to readiness (20 s on iPhone OS). Only for workers that announce readiness.
  public var launch: Duration
  /// From a request that must be answered to its answer, for workers that can answer.
  public var answer: Duration
  public var onMiss: OnMiss

  public init(
    launch: Duration = .seconds(20), answer: Duration = .seconds(10), onMiss: OnMiss = .terminate
  ) {
    self.launch = launch
    self.answer = answer
    self.onMiss = onMiss
  }
}

/// `terminate:`
public struct TerminationRules: Hashable, Sendable {
  /// What decides between two victims, the first that differs winning: the lower band goes
  /// first, the bigger footprint goes first, the longest unused goes first.
  public enum Criterion: String, Hashable, Sendable, CaseIterable {
    case band, footprint, recency
    case relaunchCost = "relaunch_cost"
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
