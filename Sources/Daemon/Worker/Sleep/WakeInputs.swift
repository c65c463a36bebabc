import Linux
import Supervision

/// The inputs of a sleeping worker, as they are watched in its place. `WakeSources` has real ones; tests hand in
/// their own.
protocol WakeInputs: AnyObject {
  /// Readable when `nextReason` may return something.
  var descriptor: Descriptor { get }
  /// What had come by the time the worker slept, and it hadn't read; it should be woken at once.
  var waiting: String? { get }
  /// All of that, for the next time that it falls asleep.
  var leftUnread: LeftUnread { get }
  /// What can't be watched; the worker could sleep through a call there.
  var refusals: [SystemCallError] { get }
  /// Not watched here: the daemon answers health checks there.
  var answered: [AsleepListener] { get }
  /// What it waits for and nothing here can see, as clauses.
  var unwatched: [String] { get }

  /// What has come since the last time; nil: nothing.
  func nextReason() -> String?

  /// The worker is about to run, or runs: what was opened in its place is handed over to it.
  func admitOpened()
}

extension WakeSources: WakeInputs {}

extension Result where Success: WakeInputs, Failure == SystemCallError {
  /// The first of what can't be watched.
  var refusal: SystemCallError? {
    switch self {
    case .success(let inputs): inputs.refusals.first
    case .failure(let error): error
    }
  }
}
