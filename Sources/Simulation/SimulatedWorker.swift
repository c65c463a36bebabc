import Lifecycle
import Policy

/// The processes behind a worker, as the kernel would see them.
struct SimulatedWorker {
  enum Body: Hashable { case absent, spawning, running, stopped, evicted }

  var body = Body.absent
  var footprint = ByteCount.zero
  /// The part of its footprint that it offers.
  var purgeable = ByteCount.zero
  var beforeEviction = ByteCount.zero
  /// Counts launches, so that news of an earlier life is dropped in a later one.
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
  /// An operation is under way: its outcome hasn't happened yet.
  var isBusy = false
  /// A resume has failed half-way.
  var isUnverifiable = false
}

/// News that will be sent to the engine.
struct Pending {
  var at: Instant
  var order: Int
  var event: Event
  /// The life that the news is of; `nil`: news of the machine.
  var life: Int?
  /// The news was sent before, and is sent again: nothing happens to the body.
  var echoOf: Int?
  /// The operation that this is the outcome of.
  var operation: Int?
  /// What happens to its message, when the outcome happens.
  var fate = Fate.delivered

  enum Fate { case delivered, lost, late, hasHappened }
}
