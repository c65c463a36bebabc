import Linux
import Policy
import Synchronization

/// Waits until a later daemon would find a worker: its record is on the disk. Without one, that daemon would remove
/// the worker's image, as that of a worker that doesn't exist any more (`SurvivorRemains`), and with it the only copy
/// of its memory. So a hibernation waits before its image gets its name; its pages are read and compressed meanwhile.
/// What is known before it begins ends it there.
final class RecordWait: Sendable {
  /// A hibernation waits for this long at most: a client may be waiting for its end.
  static let patience = Duration.seconds(5)

  private let patience: Duration
  private let end: Deadline
  private let answer = Mutex<Bool?>(nil)
  private let isAnswered = Signal()

  init(patience: Duration = RecordWait.patience) {
    self.patience = patience
    end = Deadline(in: patience)
  }

  /// The disk has what was saved before the wait began. Callable on any thread, once.
  ///
  /// - Parameter isThere: whether there is a record of the worker.
  func answer(_ isThere: Bool) {
    answer.withLock { $0 = isThere }
    isAnswered.raise()
  }

  /// Not for the loop's thread.
  ///
  /// - Parameter waits: for the answer, for `patience` since `init` at most.
  /// - Returns: why a later daemon may not find the worker; `nil`: it would find it, or that isn't known and `waits` is
  ///   false.
  func obstacle(waits: Bool) -> String? {
    if waits { isAnswered.wait(until: end) }
    switch answer.withLock({ $0 }) {
    case true?: return nil
    case false?:
      return
        "its record can't be written: the next daemon would not find it, and would remove its image"
    case nil:
      if !waits, !end.hasPassed { return nil }
      return
        "its record isn't on the disk after \(patience.spoken): the next daemon would not find "
        + "it, and would remove its image"
    }
  }
}
