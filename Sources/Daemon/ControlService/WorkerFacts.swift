import Control
import Hibernation
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// What the daemon knows of a worker and the engine doesn't, as reports show it.
struct WorkerFacts {
  var command: [String] = []
  var groups: [String] = []
  var policy: LifecyclePolicy
  /// In the configuration file.
  var isDeclared = true
  var isAdopted = false
  /// The rule by which it was adopted.
  var rule: String?
  /// The request for its adoption has chosen its policy.
  var hasChosenPolicy = false
  /// Keys of its configuration that apply at its next launch.
  var changedSinceLaunch: [String] = []
  var reloadSignal: Int32?
  var healthChecks: [AsleepAnswer] = []
  var log: String?
  var logUser: String?
  var logTimes: String?
  /// Of a wrapper's own worker.
  var wrapper: WrapperFacts?
  /// `STATUS=`.
  var says: String?
  /// Over the worker protocol; and what in it had no effect.
  var connections: Int?
  var talk: String?

  /// Bytes on disk: of its image, as its record has it; and of what its next image builds on.
  var imageLength: Int64?
  var baseSize: Int64 = 0
  var lastHibernation: LastHibernation?
  var restoreMode: CodedText?
  /// What it waits for and can't be woken by.
  var unwatched: [String] = []
  /// While it sleeps: its own work that nothing wakes it for.
  var stoppedWork: StoppedWork?
  var plans = WorkerPlans()

  /// What showed last that it is used.
  var signOfUse: SignOfUse?
  /// Of traffic: where it came from.
  var source: TrafficSource?
  /// At which it listens.
  var ports: Set<UInt16> = []

  /// Its first process.
  var process: WorkerProcess?
  var measured: (reclaimable: Int64, sharedByFork: Int64, at: Instant)?

  init(policy: LifecyclePolicy) { self.policy = policy }
}

/// What reports show of a wrapper.
struct WrapperFacts {
  var pid: Int32
  var wakes: Int
  var host: String?
  var directory: String?
}

/// What a worker's last hibernation took.
struct LastHibernation {
  var written: Int64
  var unchanged: Int64
  var seconds: Double
  var footprintBefore: ByteCount
}

/// A worker's earlier runs, and what is planned for it.
struct WorkerPlans {
  var exits: [ExitRecord] = []
  var restarts = 0
  /// When it is started again.
  var restart: RestartPlan?
  /// It waits for other workers; a clause.
  var awaited: String?
  /// Their names.
  var awaitedWorkers: [String] = []
  /// Why it isn't started any more; a clause.
  var problem: String?
  /// That is because it has ended too often.
  var hasGivenUp = false
  var livenessFailure: String?
  /// By its schedule, in seconds since 1970.
  var nextWake: Int64?
  /// Health checks since it fell asleep.
  var answeredAsleep: Int?
}

/// What decides a policy in force, beside the policies.
struct PolicyFacts {
  var origins: Origins
  var resumeOverride: ResumePreference?
  var isWrapper = false
}
