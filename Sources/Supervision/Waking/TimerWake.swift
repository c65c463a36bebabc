import Linux

/// Chooses the timeout of a sleeping worker that wakes it.
///
/// Nearly every program has timers that mean nothing while it has no requests: redis wakes up ten
/// times a second, a runtime collects garbage, a pool checks its connections. If those woke it, it
/// would never sleep. So a duration that the program has set counts if it is as long as the policy
/// demands. If only the end is known (absolute timeouts), the worker is woken, but no sooner than
/// that duration after a timer last woke it.
public struct TimerWake: Hashable, Sendable {
  /// The time from now until the wake.
  public var delay: Duration
  /// The reason, as a clause for the operator.
  public var reason: String

  /// Absolute timeouts that end sooner than this are taken for housekeeping.
  static let minAbsolute = Duration.seconds(2)

  /// The minimum duration for a worker without clients, which only works by its timers. A server's
  /// housekeeping of 20 or 30 s doesn't count.
  public static let minWithoutClients = Duration.seconds(15)

  /// - Parameter rule: `background.wake_for_timers`; nil means never.
  public static func shortest(_ rule: Duration?, hasClients: Bool) -> Duration? {
    hasClients ? rule : rule.map { min($0, minWithoutClients) }
  }

  /// The first timeout that counts, or nil if the worker sleeps until a request comes.
  ///
  /// - Parameters:
  ///   - shortest: the minimum duration (`background.wake_for_timers`).
  ///   - sinceLast: the time since a timer last woke the worker; nil if none has.
  public static func first(
    of times: [DueTime], shortest: Duration, sinceLast: Duration? = nil
  ) -> TimerWake? {
    let earliest = sinceLast.map { max(.zero, shortest - $0) } ?? .zero
    let counted = times.compactMap { time -> (delay: Duration, time: DueTime)? in
      if let whole = time.whole {
        return whole >= shortest ? (time.remaining, time) : nil
      }
      guard time.remaining >= min(minAbsolute, shortest) else { return nil }
      return (max(time.remaining, earliest), time)
    }
    guard let first = counted.min(by: { $0.delay < $1.delay }) else { return nil }
    let what =
      first.time.source == .timer ? "its own timer" : "the time-out of a system call"
    return TimerWake(delay: first.delay, reason: what)
  }
}

/// A timer by which a worker without clients works, such as one that polls. It doesn't run while
/// the worker sleeps.
public struct StoppedTimer: Hashable, Sendable {
  /// The time between two of its runs, or until the next one if that isn't known.
  public var interval: Duration
  public var repeats: Bool

  public init(interval: Duration, repeats: Bool) {
    self.interval = interval
    self.repeats = repeats
  }

  /// Shorter timers are the housekeeping of an event loop or a runtime.
  static let shortest = Duration.seconds(1)

  /// The first timer that is due. Returns nil if none is long enough.
  public init?(_ times: [DueTime]) {
    let counted = times.filter { ($0.whole ?? $0.remaining) >= Self.shortest }
    guard let first = counted.map(\.remaining).min() else { return nil }
    // A timeout may be listed twice, with its whole duration and without.
    let whole = counted.filter { $0.remaining == first }.compactMap(\.whole).max()
    self.init(interval: whole ?? first, repeats: whole != nil)
  }
}
