import Linux
import Policy

/// A moment on CLOCK_MONOTONIC, which stands still while the machine sleeps. `Instant` is one on CLOCK_BOOTTIME.
package struct AwakeInstant: Hashable, Comparable, Sendable {
  package let nanoseconds: Int64

  package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  package static var now: AwakeInstant { AwakeInstant(nanoseconds: Clocks.monotonic) }

  package static func < (left: AwakeInstant, right: AwakeInstant) -> Bool {
    left.nanoseconds < right.nanoseconds
  }
  /// Saturates.
  package static func + (left: AwakeInstant, right: Duration) -> AwakeInstant {
    let (sum, overflow) = left.nanoseconds.addingReportingOverflow(right.wholeNanoseconds)
    return AwakeInstant(nanoseconds: overflow ? (right < .zero ? .min : .max) : sum)
  }
  package static func - (left: AwakeInstant, right: AwakeInstant) -> Duration {
    .nanoseconds(left.nanoseconds - right.nanoseconds)
  }
}

/// What waits for moments on one clock.
struct TimerList<Moment: Comparable> {
  struct Waiting {
    let at: Moment
    let id: UInt64
    let label: TurnCheck.Label
    let action: () -> Void
  }

  /// The next one first; of several that are due at the same moment, the one that was set first.
  private var waiting: [Waiting] = []

  var first: Moment? { waiting.first?.at }

  mutating func add(_ new: Waiting) {
    let place = waiting.firstIndex { $0.at > new.at } ?? waiting.count
    waiting.insert(new, at: place)
  }

  mutating func cancel(_ id: UInt64) { waiting.removeAll { $0.id == id } }

  /// Removes the first one that is due, and that was set no later than the one with this number.
  mutating func takeDue(at now: Moment, upTo latest: UInt64) -> Waiting? {
    guard let place = waiting.firstIndex(where: { $0.id <= latest }), waiting[place].at <= now
    else { return nil }
    return waiting.remove(at: place)
  }
}
