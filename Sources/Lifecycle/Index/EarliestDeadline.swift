import Policy

/// The first of some instants after `now`, without a list of them: the engine asks after each event.
struct EarliestDeadline {
  let now: Instant
  private var best = Instant(nanoseconds: .max)

  init(after now: Instant) { self.now = now }

  /// What lies in the past, and what saturated ("never"), doesn't count.
  mutating func consider(_ time: Instant?) {
    guard let time, time > now, time < best else { return }
    best = time
  }

  var instant: Instant? { best.nanoseconds == .max ? nil : best }
}
