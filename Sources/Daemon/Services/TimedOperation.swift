/// An operation on other threads that has a deadline. Its outcome counts once: not after the
/// deadline, and not after another operation has begun. It is cancelled with its owner. Belongs to
/// the loop's thread.
final class TimedOperation {
  private let timers: any Timers
  private var operations = OperationCount()
  private var timer: LoopToken?

  init(_ timers: any Timers) { self.timers = timers }

  deinit { cancel() }

  /// An operation has begun that has no outcome yet, or `wait`.
  var isUnderWay: Bool { timer != nil }

  /// Begins an operation. An earlier one doesn't count any more.
  ///
  /// - Parameters:
  ///   - lost: counts as the outcome when the limit is reached.
  ///   - then: called once, perhaps before this returns; never after `cancel`.
  func begin<Outcome>(
    within limit: Duration, orElse lost: Outcome, file: StaticString = #fileID,
    line: UInt = #line, _ work: (@escaping (Outcome) -> Void) -> Void,
    then: @escaping (Outcome) -> Void
  ) {
    cancel()
    let number = operations.begin()
    let complete: (Outcome) -> Void = { [weak self] outcome in
      guard let self, operations.isLatest(number) else { return }
      cancel()
      then(outcome)
    }
    timer = timers.after(limit, file: file, line: line) { complete(lost) }
    work(complete)
  }

  /// Only waits, as a timer that can be set again: an earlier wait or operation doesn't count any
  /// more.
  func wait(
    _ time: Duration, file: StaticString = #fileID, line: UInt = #line,
    then: @escaping () -> Void
  ) {
    begin(within: time, orElse: (), file: file, line: line) { _ in
    } then: { _ in
      then()
    }
  }

  func cancel() {
    if let timer { timers.cancel(timer) }
    timer = nil
    _ = operations.begin()
  }
}
