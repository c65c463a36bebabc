/// How much of what a worker sends may still be read: `perSecond`, and no more than `maxSaved` is
/// saved up.
final class Allowance {
  private let perSecond: Int64
  private let maxSaved: Int64
  /// The time in nanoseconds before which nothing is added: the amounts are integers.
  private let interval: Int64
  private(set) var left: Int64
  private var refilledAt: Int64 = 0

  init(perSecond: Int64, maxSaved: Int64, interval: Int64) {
    self.perSecond = perSecond
    self.maxSaved = maxSaved
    self.interval = interval
    left = maxSaved
  }

  var isLeft: Bool { left > 0 }

  /// The balance may fall below zero by the size of one read. Nothing more is read until it is
  /// positive again.
  func use(_ count: Int) { left -= Int64(count) }

  /// - Parameter now: nanoseconds of CLOCK_BOOTTIME.
  func refill(at now: Int64) {
    let second: Int64 = 1_000_000_000
    let span = min(now - refilledAt, 16 * second)
    guard span >= interval else { return }
    refilledAt = now
    left = min(maxSaved, left + span * perSecond / second)
  }
}
