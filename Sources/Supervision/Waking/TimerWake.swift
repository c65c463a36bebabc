import Linux

/// Which of a sleeping worker's own time-outs it is woken for.
///
/// Nearly every program has timers that mean nothing while it has no requests: redis wakes up ten times a
/// second, a runtime collects garbage, a pool checks its connections. Waking for those would mean never
/// sleeping. So a whole duration that the program has set must be as long as the policy says. If only the end
/// is known (absolute time-outs), the worker is woken, but no sooner than that after the last time that a timer
/// woke it.
public struct TimerWake: Hashable, Sendable {
  /// After now.
  public var delay: Duration
  /// A clause for people.
  public var why: String

  /// Absolute time-outs that end sooner are taken for housekeeping.
  static let soonest = Duration.seconds(2)

  /// A worker without clients does nothing but by its timers: they are woken for from this length on, and a server's
  /// housekeeping of 20 or 30 s isn't.
  public static let ofJobs = Duration.seconds(15)

  /// - Parameter rule: `background.wake_for_timers`; nil: never.
  public static func shortest(_ rule: Duration?, hasClients: Bool) -> Duration? {
    hasClients ? rule : rule.map { min($0, ofJobs) }
  }

  /// The first that counts; nil: it sleeps until a request comes.
  ///
  /// - Parameters:
  ///   - shortest: `background.wake_for_timers`.
  ///   - sinceLast: since a timer woke it the last time; nil: none has.
  public static func first(
    of times: [DueTime], shortest: Duration, sinceLast: Duration? = nil
  ) -> TimerWake? {
    let earliest = sinceLast.map { max(.zero, shortest - $0) } ?? .zero
    let counted = times.compactMap { time -> (delay: Duration, time: DueTime)? in
      if let whole = time.whole {
        return whole >= shortest ? (time.remaining, time) : nil
      }
      guard time.remaining >= min(soonest, shortest) else { return nil }
      return (max(time.remaining, earliest), time)
    }
    guard let first = counted.min(by: { $0.delay < $1.delay }) else { return nil }
    let what =
      first.time.source == .timer ? "its own timer" : "the time-out of a system call"
    return TimerWake(delay: first.delay, why: what)
  }
}

/// A timer by which a worker without clients works, such as a poller's. It doesn't run while the
/// worker sleeps.
public struct StoppedTimer: Hashable, Sendable {
  /// The time between two of its runs, or until the next one if that isn't known.
  public var interval: Duration
  public var repeats: Bool

  public init(interval: Duration, repeats: Bool) {
    self.interval = interval
    self.repeats = repeats
  }

  /// Shorter ones are housekeeping: an event loop's, a runtime's.
  static let shortest = Duration.seconds(1)

  /// The first that is due; nil: none is long enough.
  public init?(_ times: [DueTime]) {
    let counted = times.filter { ($0.whole ?? $0.remaining) >= Self.shortest }
    guard let first = counted.map(\.remaining).min() else { return nil }
    // A time-out may be listed twice, with its whole time and without.
    let whole = counted.filter { $0.remaining == first }.compactMap(\.whole).max()
    self.init(interval: whole ?? first, repeats: whole != nil)
  }
}
