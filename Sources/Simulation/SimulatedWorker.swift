import Lifecycle
import Policy

/// The processes behind a worker, as the kernel would see them.
struct SimulatedWorker {
  enum Body: Hashable { case absent, spawning, running, stopped, evicted }

  var body = Body.absent
  var footprint = ByteCount.zero
  /// Of its footprint, on offer.
  var purgeable = ByteCount.zero
  var beforeEviction = ByteCount.zero
  /// Counts launches, so that news of an earlier life isn't told in a later one.
  var life = 0
  var isShedding = false
  /// Stuck in the kernel: SIGKILL doesn't end it.
  var isUnkillable = false
  var isDoomed = false
  /// Counts directives, so that an echo of an earlier one's outcome isn't taken for a later one's.
  var directives = 0
  /// Counts operations that change the body. The shell numbers them, and drops the outcome of an
  /// earlier one.
  var operations = 0
  /// The one under way: its outcome hasn't happened yet.
  var isBusy = false
  /// A resume has failed half-way.
  var isUnverifiable = false
}

/// Something that will be told to the engine.
struct Pending {
  var at: Instant
  var order: Int
  var event: Event
  /// The life that it is news of; `nil`: of the machine.
  var life: Int?
  /// Told before, and told again: nothing happens to the body.
  var echoOf: Int?
  /// The outcome of this operation.
  var operation: Int?
  /// What becomes of its message, when the outcome happens.
  var fate = Fate.told

  enum Fate { case told, lost, late, hasHappened }
}
