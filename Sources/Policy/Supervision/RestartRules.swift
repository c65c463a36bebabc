/// `restart:`. Whether and when a worker that ended is started again.
public struct RestartRules: Hashable, Sendable {
  /// When a worker that ended is started again.
  public enum Condition: String, Hashable, Sendable, CaseIterable {
    /// The worker is never started again.
    case never = "no"
    /// The worker is started again only after a termination for lack of memory, when there is room
    /// again.
    case afterShortage = "after-shortage"
    /// The worker is started again after a signal, or an exit code other than 0.
    case onFailure = "on-failure"
    /// The worker is started again whatever its exit code. If a person stopped it, it stays stopped
    /// until the daemon restarts.
    case always
    /// The worker is started again as with `always`. If a person stopped it, it stays stopped over
    /// the daemon's restart, too.
    case unlessStopped = "unless-stopped"

    /// Whether the worker may be started again after it ended by itself.
    public var restartsAfterExit: Bool { self != .never && self != .afterShortage }
    /// Whether the worker is started again after a termination for lack of memory. With
    /// `on-failure` it isn't: such a termination is no failure.
    public var restartsAfterShortage: Bool { self != .never && self != .onFailure }
  }
  public var condition: Condition
  public var backoff: Backoff
  /// When restarts end. `nil`: never.
  public var giveUp: GiveUp?

  public init(
    _ condition: Condition = .afterShortage, backoff: Backoff = Backoff(),
    giveUp: GiveUp? = GiveUp()
  ) {
    self.condition = condition
    self.backoff = backoff
    self.giveUp = giveUp
  }

  /// `restart.give_up:`. After this number of restarts within the window, the worker stays ended.
  public struct GiveUp: Hashable, Sendable {
    /// The number of restarts.
    public var restarts: Int
    /// The time in which restarts are counted.
    public var window: Duration

    public init(restarts: Int = 5, window: Duration = .seconds(600)) {
      self.restarts = restarts
      self.window = window
    }
  }
}

/// `restart.backoff:`. The delay before a restart: `initial × factor^n`, at most `max`.
public struct Backoff: Hashable, Sendable {
  public var initial: Duration
  public var max: Duration
  /// The factor, 1–100. With 1 the delay is always the same.
  public var factor: Double

  public init(
    initial: Duration = .seconds(1), max: Duration = .seconds(60), factor: Double = 2
  ) {
    self.initial = initial
    self.max = max
    self.factor = factor
  }

  /// The delay before the restart that follows `failures` earlier ones in a row.
  public func delay(afterRestarts failures: Int) -> Duration {
    var nanoseconds = Double(initial.wholeNanoseconds)
    let maxNanoseconds = Double(max.wholeNanoseconds)
    // Multiplying step by step ends early, and never overflows.
    for _ in 0..<Swift.max(0, failures) {
      guard nanoseconds < maxNanoseconds, factor > 1 else { break }
      nanoseconds *= factor
    }
    return nanoseconds >= maxNanoseconds ? max : .nanoseconds(Int64(nanoseconds))
  }
}

/// A worker's recent restarts. Pure: the caller passes the time.
public struct RestartHistory: Hashable, Sendable {
  /// The times of its restarts, the oldest first. Those in the window of `give_up` count.
  public private(set) var restarts: [Instant] = []
  /// Restarts in a row after short runs.
  public private(set) var streak = 0

  public init() {}

  /// What follows from the end of a worker.
  public enum Decision: Hashable, Sendable {
    /// The worker isn't started again: it has done its work, or a person wants it stopped.
    case stay
    /// The worker is started again after this delay.
    case restart(after: Duration)
    /// The limit of restarts within the window is reached.
    case giveUp(restarts: Int, window: Duration)
  }

  /// Decides what follows from the end of a worker, and records the restart.
  ///
  /// - Parameters:
  ///   - succeeded: whether it exited with 0.
  ///   - ran: how long it ran. A run longer than the longest back-off was a good one, and resets
  ///   the back-off.
  public mutating func ended(
    succeeded: Bool, ran: Duration, rules: RestartRules, at now: Instant
  ) -> Decision {
    switch rules.condition {
    case .never, .afterShortage: return .stay
    case .onFailure where succeeded: return .stay
    case .onFailure, .always, .unlessStopped: break
    }
    if let giveUp = rules.giveUp {
      restarts.removeAll { now - $0 > giveUp.window }
      if restarts.count >= giveUp.restarts {
        return .giveUp(restarts: restarts.count, window: giveUp.window)
      }
    } else {
      restarts = []
    }
    if ran > rules.backoff.max { streak = 0 }
    let delay = rules.backoff.delay(afterRestarts: streak)
    streak += 1
    restarts.append(now)
    return .restart(after: delay)
  }

  /// Forgets earlier restarts: a person started the worker.
  public mutating func reset() { self = RestartHistory() }
}
