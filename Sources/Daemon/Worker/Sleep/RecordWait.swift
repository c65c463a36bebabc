import Linux
import Policy
import Synchronization

/// Waits until a later daemon would find a worker: its record is on the disk. Without one, that daemon would remove
/// the worker's image, as that of a worker that doesn't exist any more (`SurvivorRemains`), and with it the only copy
/// of its memory. So a hibernation waits before its image gets its name; its pages are read and compressed meanwhile.
final class RecordWait: Sendable {
  /// A client that wants the worker awake waits for the hibernation, and for nothing longer than this in it.
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

  /// Waits for the answer, for `patience` since `init` at most. Not for the loop's thread.
  ///
  /// - Returns: why a later daemon may not find the worker; `nil`: it would find it.
  func obstacle() -> String? {
    isAnswered.wait(until: end)
    switch answer.withLock({ $0 }) {
    case true?: return nil
    case false?:
      return
        "its record can't be written: the next daemon would not find it, and would remove its image"
    case nil:
      return
        "its record isn't on the disk after \(patience.spoken): the next daemon would not find "
        + "it, and would remove its image"
    }
  }
}
