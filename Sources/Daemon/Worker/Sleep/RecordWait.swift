import Linux
import Policy
import Synchronization

/// Waits until a later daemon would find a worker, that is, until the worker's record is on the
/// disk. Without a record, that daemon would remove the worker's image as that of a worker that
/// doesn't exist any more (`removeOrphanedImages`), and with it the only copy of the worker's
/// memory. So a hibernation waits before its image gets its name. Its pages are read and compressed
/// meanwhile. If the record is known to be missing, the hibernation fails before it starts.
final class RecordWait: Sendable {
  /// The maximum wait of a hibernation: a client may be waiting for its end.
  static let timeout = Duration.seconds(5)

  private let timeout: Duration
  private let end: Deadline
  private let answer = Mutex<Bool?>(nil)
  private let isAnswered = OneTimeEvent()

  init(timeout: Duration = RecordWait.timeout) {
    self.timeout = timeout
    end = Deadline(in: timeout)
  }

  /// Reports that the disk has what was saved before the wait began. May be called on any thread,
  /// once.
  ///
  /// - Parameter isThere: whether there is a record of the worker.
  func answer(_ isThere: Bool) {
    answer.withLock { $0 = isThere }
    isAnswered.raise()
  }

  /// Checks for the record. Not for the loop's thread.
  ///
  /// - Parameter waits: whether to wait for the answer, until `patience` after `init` at most.
  /// - Returns: why a later daemon may not find the worker; nil: it would find it, or that isn't
  ///   known yet and `waits` is false.
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
        "its record isn't on the disk after \(timeout.text): the next daemon would not find "
        + "it, and would remove its image"
    }
  }
}
