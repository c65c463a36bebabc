import Linux

/// The time for which a worker stands still while it is trimmed by userfaultfd.
///
/// On a busy machine it could be seconds: each step waits for a processor. So until the image is
/// complete the trim may be given up: the worker then runs on, and nothing of it has changed.
struct Standstill: Sendable {
  /// The greatest time until the image is complete; nil: there is none.
  let limit: Duration?
  private let began = Clocks.monotonic
  private let limitEnd: Deadline?

  init(limit: Duration?) {
    self.limit = limit
    limitEnd = limit.map { Deadline(in: $0) }
  }

  /// When a step that waits for the worker gives up.
  var end: Deadline {
    let end = Deadline(in: HibernationTarget.timeout)
    return limitEnd.map { min($0, end) } ?? end
  }

  /// The time since the beginning.
  var length: Duration { .nanoseconds(Clocks.monotonic - began) }

  /// Throws if the worker has stood still for too long.
  func check() throws(HibernationError) {
    guard let limit, limitEnd?.hasPassed == true else { return }
    throw HibernationError(
      .stopping,
      "the machine is busy, or the worker changes much memory: it would stand still for more than "
        + "\(Int(limit / .milliseconds(1))) ms")
  }
}
