/// `restart:`. Whether and when a worker that ended is started again.
public struct RestartRules: Hashable, Sendable {
  public enum Condition: String, Hashable, Sendable, CaseIterable {
    case never = "no"
    /// After a signal, or an exit code but 0.
    case onFailure = "on-failure"
    /// Whatever the exit code. One that a person stopped stays so until the daemon starts anew.
    case always
    /// As `always`, and one that a person stopped stays stopped over the daemon's restart, too.
    case unlessStopped = "unless-stopped"
  }
  public var condition: Condition
  public var backoff: Backoff
  /// `nil`: never.
  public var giveUp: GiveUp?

  public init(
    _ condition: Condition = .never, backoff: Backoff = Backoff(), giveUp: GiveUp? = GiveUp()
  ) {
    self.condition = condition
    self.backoff = backoff
    self.giveUp = giveUp
  }

  /// `restart.give_up:`. So many restarts within so long, and one more end is the last.
  public struct GiveUp: Hashable, Sendable {
    public var restarts: Int
    public var window: Duration

    public init(restarts: Int = 5, window: Duration = .seconds(600)) {
      self.restarts = restarts
      self.window = window
    }
  }
}

/// `restart.backoff:`. How long to wait before a restart: `initial × factor^n`, at most `max`.
public struct Backoff: Hashable, Sendable {
  public var initial: Duration
  public var max: Duration
  /// 1–100; 1 waits the same time always.
  public var factor: Double

  public init(
    initial: Duration = .seconds(1), max: Duration = .seconds(60), factor: Double = 2
  ) {
    self.initial = initial
    self.max = max
    self.factor = factor
  }

  /// Before the restart that follows `failures` earlier ones in a row.
  public func delay(afterRestarts failures: Int) -> Duration {
    var nanoseconds = Double(initial.wholeNanoseconds)
    let most = Double(max.wholeNanoseconds)
    // Ends early, and never overflows.
    for _ in 0..<Swift.max(0, failures) {
      guard nanoseconds < most, factor > 1 else { break }
      nanoseconds *= factor
    }
    return nanoseconds >= most ? max : .nanoseconds(Int64(nanoseconds))
  }
}

/// What is remembered of one worker's restarts. Pure: it is told the time.
public struct RestartHistory: Hashable, Sendable {
  /// When it was restarted, the oldest first; those in the window of `give_up` count.
  public private(set) var restarts: [Instant] = []
  /// Restarts in a row of runs that were short.
  public private(set) var streak = 0

  public init() {}

  public enum Decision: Hashable, Sendable {
    /// It has done its work, or a person wants it so.
    case stay
    case restart(after: Duration)
    /// So many restarts within the window.
    case giveUp(restarts: Int, window: Duration)
  }

  /// A worker has ended.
  ///
  /// - Parameters:
  ///   - succeeded: it exited with 0.
  ///   - ran: how long. A run longer than the longest back-off was a good one, and the back-off begins
  ///     anew.
  public mutating func ended(
    succeeded: Bool, ran: Duration, rules: RestartRules, at now: Instant
  ) -> Decision {
    switch rules.condition {
    case .never: return .stay
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

  /// A person started it: what was before doesn't count any more.
  public mutating func reset() { self = RestartHistory() }
}
