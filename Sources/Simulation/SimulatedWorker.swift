import Lifecycle
import Policy

/// The processes of a simulated worker, as the kernel would see them.
struct SimulatedWorker {
  enum Body: Hashable { case absent, spawning, running, stopped, evicted }

  var body = Body.absent
  var footprint = ByteCount.zero
  /// The purgeable share of its footprint.
  var purgeable = ByteCount.zero
  var beforeEviction = ByteCount.zero
  /// The number of launches, by which events of an earlier run are recognized and dropped.
  var life = 0
  var isShedding = false
  /// How much of its footprint is in swap.
  var swapped = ByteCount.zero
  /// Since when its memory has been trimmed or filled. nil: it isn't.
  var movingSince: Instant?
  /// True if the worker is stuck in the kernel, so that SIGKILL doesn't end it.
  var isUnkillable = false
  /// The number of directives, by which an echo of an earlier directive's outcome is recognized.
  var directives = 0
  /// The number of operations that change the body. The daemon numbers them, too, and drops the
  /// outcome of an earlier one.
  var operations = 0
  /// True while an operation is in progress: its outcome hasn't occurred yet.
  var isBusy = false
  /// True if a resume has failed half-way.
  var isUnverifiable = false
}

/// An event that will be sent to the engine.
struct PendingEvent {
  var at: Instant
  var order: Int
  var event: Event
  /// The number of the worker's run to which the event belongs. `nil`: it is an event of the
  /// machine.
  var life: Int?
  /// The number of the directive whose outcome is sent again. Nothing happens to the body.
  var echoOf: Int?
  /// The number of the operation that has this outcome.
  var operation: Int?
  /// What happens to the message when the outcome occurs.
  var fate = Fate.delivered

  enum Fate { case delivered, lost, late, occurred }
}
