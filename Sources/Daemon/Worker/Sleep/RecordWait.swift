import Lifecycle
import Policy

/// Waits until a later daemon would find a worker: its record is on the disk. Without one, that daemon would remove
/// the worker's image, as that of a worker that doesn't exist any more (`SurvivorRemains`), and with it the only copy
/// of its memory. Belongs to the loop's thread.
final class RecordWait {
  /// A client that wants the worker awake waits for the hibernation, and for nothing longer than this before it.
  static let patience = Duration.seconds(5)

  private let timers: any Timers
  private let patience: Duration
  private var operations = OperationCount()
  private var timer: LoopToken?

  init(_ timers: any Timers, patience: Duration = RecordWait.patience) {
    self.timers = timers
    self.patience = patience
  }

  deinit { stopTimer() }

  /// - Parameters:
  ///   - ask: calls back when the disk has what was saved, with whether it has a record of the worker. On a disk that
  ///     doesn't answer it doesn't call back.
  ///   - then: called once, with the reason if a later daemon may not find the worker. Not called after `cancel`.
  func begin(
    _ ask: (_ answer: @escaping (_ isThere: Bool) -> Void) -> Void,
    then: @escaping (_ obstacle: String?) -> Void
  ) {
    cancel()
    let number = operations.begin()
    timer = timers.after(patience) { [unowned self] in
      end()
      then(
        "its record isn't on the disk after \(patience.spoken): the next daemon would not find "
          + "it, and would remove its image")
    }
    ask { [weak self] isThere in
      guard let self, operations.isLatest(number) else { return }
      end()
      then(
        isThere
          ? nil
          : "its record can't be written: the next daemon would not find it, and would remove its image"
      )
    }
  }

  func cancel() { end() }

  private func end() {
    _ = operations.begin()
    stopTimer()
  }

  private func stopTimer() {
    if let timer { timers.cancel(timer) }
    timer = nil
  }
}
