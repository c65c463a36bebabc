import Policy

/// The earliest of some instants after `now`. It needs no list of them: the engine asks for it
/// after each event.
struct EarliestDeadline {
  let now: Instant
  private var best = Instant(nanoseconds: .max)

  init(after now: Instant) { self.now = now }

  /// An instant that has passed doesn't count, nor does one that saturated ("never").
  mutating func consider(_ time: Instant?) {
    guard let time, time > now, time < best else { return }
    best = time
  }

  var instant: Instant? { best.nanoseconds == .max ? nil : best }
}
