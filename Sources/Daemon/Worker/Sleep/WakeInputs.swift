import Linux
import Supervision

/// The inputs of a sleeping worker, as they are watched in its place. `WakeSources` has real ones; tests
/// provide their own.
protocol WakeInputs: AnyObject {
  /// Readable when `nextReason` may return something.
  var descriptor: Descriptor { get }
  /// Input that had come by the time the worker slept, and that it hadn't read; it should be woken at once.
  var waiting: String? { get }
  /// All of that, for the next time that it falls asleep.
  var leftUnread: LeftUnread { get }
  /// Inputs that can't be watched; the worker could miss a request there.
  var refusals: [SystemCallError] { get }
  /// Not watched here: the daemon answers health checks there.
  var answered: [AsleepListener] { get }
  /// Waits of the worker that can't be watched, as clauses.
  var unwatched: [String] { get }
  /// A client can give it work.
  var hasClients: Bool { get }

  /// The input that has come since the last time; nil: none.
  func nextReason() -> String?

  /// The worker is about to run, or runs: files that were opened in its place are passed on to it.
  func admitOpened()
}

extension WakeSources: WakeInputs {}

extension Result where Success: WakeInputs, Failure == SystemCallError {
  /// The first input that can't be watched; better one that could be in a moment.
  var refusal: SystemCallError? {
    switch self {
    case .success(let inputs): inputs.refusals.first(where: \.isShortage) ?? inputs.refusals.first
    case .failure(let error): error
    }
  }
}
