import Linux
import Policy

/// A time of CLOCK_MONOTONIC, which stops while the machine sleeps. `Instant` is a time of
/// CLOCK_BOOTTIME, which doesn't.
package struct AwakeInstant: Hashable, Comparable, Sendable {
  package let nanoseconds: Int64

  package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  package static var now: AwakeInstant { AwakeInstant(nanoseconds: Clocks.monotonic) }

  package static func < (left: AwakeInstant, right: AwakeInstant) -> Bool {
    left.nanoseconds < right.nanoseconds
  }
  /// Saturates at the limits of `Int64`.
  package static func + (left: AwakeInstant, right: Duration) -> AwakeInstant {
    let (sum, overflow) = left.nanoseconds.addingReportingOverflow(right.wholeNanoseconds)
    return AwakeInstant(nanoseconds: overflow ? (right < .zero ? .min : .max) : sum)
  }
  package static func - (left: AwakeInstant, right: AwakeInstant) -> Duration {
    .nanoseconds(left.nanoseconds - right.nanoseconds)
  }
}

/// Timers that wait for times of one clock.
struct TimerList<Moment: Comparable> {
  struct Waiting {
    let at: Moment
    let id: UInt64
    let label: TurnCheck.Label
    let action: () -> Void
  }

  /// Sorted by time. Timers for the same time are in the order in which they were set.
  private var waiting: [Waiting] = []

  var first: Moment? { waiting.first?.at }

  mutating func add(_ new: Waiting) {
    let index = waiting.firstIndex { $0.at > new.at } ?? waiting.count
    waiting.insert(new, at: index)
  }

  mutating func cancel(_ id: UInt64) { waiting.removeAll { $0.id == id } }

  /// Removes and returns the first timer that is due and whose number is at most `latest`.
  mutating func popDue(at now: Moment, upTo latest: UInt64) -> Waiting? {
    guard let index = waiting.firstIndex(where: { $0.id <= latest }), waiting[index].at <= now
    else { return nil }
    return waiting.remove(at: index)
  }
}
