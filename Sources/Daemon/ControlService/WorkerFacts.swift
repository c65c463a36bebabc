import Control
import Hibernation
import Lifecycle
import Policy
import PolicyFile
import Supervision

/// What the daemon, and not the engine, knows about a worker, for reports that decide by it.
struct WorkerFacts {
  var policy: LifecyclePolicy
  /// Whether the worker is in the configuration file.
  var isDeclared = true
  var isAdopted = false
  /// The rule that adopted it; nil if none did.
  var rule: String?
  /// Whether the request for its adoption has chosen its policy.
  var hasChosenPolicy = false
  var healthChecks: [AsleepAnswer] = []

  /// The bytes on disk: of its image, as its record has it, and of its base.
  var imageLength: Int64?
  /// The bytes that are in the image of a trim only.
  var bytesInTrimImage: Int64 = 0
  var baseSize: Int64 = 0
  var lastHibernation: LastHibernation?
  /// What it waits for and can't be woken by.
  var unwatched: [String] = []
  /// While it sleeps, its own work that nothing wakes it for.
  var stoppedWork: StoppedWork?
  /// Its earlier runs, and whether it is started again.
  var history = RunHistory()
  /// The workers that it waits for, as a clause and by name; nil if it waits for none.
  var awaited: (text: String, workers: [String])?

  /// What showed its last use.
  var signOfUse: SignOfUse?
  /// Where its last traffic came from; nil if that isn't known.
  var source: TrafficSource?
  /// The ports at which it listens.
  var ports: Set<UInt16> = []

  /// Its first process.
  var process: WorkerProcess?
  var measured: (reclaimable: Int64, sharedByFork: Int64, at: Instant)?
}

/// The costs of a worker's last hibernation.
struct LastHibernation {
  var written: Int64
  var unchanged: Int64
  var seconds: Double
  var footprintBefore: ByteCount
}
