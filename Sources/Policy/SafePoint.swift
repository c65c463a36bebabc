/// `background.safe_point:`. What must be over before a worker may be suspended. Each is waited for
/// up to its limit, then the engine goes on; `0s` doesn't wait at all.
public struct SafePointRules: Codable, Hashable, Sendable {
  /// For file locks to be released (flock(2), fcntl(2)): whoever else wants one would wait for as long
  /// as the worker sleeps.
  public var fileLocks: Duration
  /// Longest that `X_DORMOUSE_HOLD=1` puts suspension off, from entering the background.
  public var hold: Duration
  /// Shortest time from launch, and from the last wake, to the next suspension that nobody asked for.
  public var afterLaunch: Duration
  public var afterWake: Duration

  public init(
    fileLocks: Duration = .seconds(10), hold: Duration = .seconds(600),
    afterLaunch: Duration = .zero, afterWake: Duration = .zero
  ) {
    self.fileLocks = fileLocks
    self.hold = hold
    self.afterLaunch = afterLaunch
    self.afterWake = afterWake
  }
}

/// `background.heartbeat:`. A sleeping worker may run for a moment now and then: to answer a
/// keep-alive, or to look at the clock.
public struct HeartbeatRules: Codable, Hashable, Sendable {
  /// From falling asleep, or the end of the last heartbeat, to the next.
  public var every: Duration
  /// How long it runs then.
  public var lasting: Duration
  /// Hibernated workers are resumed for it, too.
  public var whileHibernated: Bool

  public init(every: Duration, lasting: Duration, whileHibernated: Bool = false) {
    self.every = every
    self.lasting = lasting
    self.whileHibernated = whileHibernated
  }
}

/// `early_wake:`. A worker that is wanted again as soon as it was put away wasn't idle; for a while
/// others go before it.
public struct EarlyWakeRules: Codable, Hashable, Sendable {
  /// Woken so soon after its suspension, or started so soon after its termination. Zero: never.
  public var within: Duration
  /// Points of band that it gains each time, within the room of its state; 0–29.
  public var bonus: Int
  /// The bonus halves each time that this has passed.
  public var halvesEvery: Duration
  /// Put away too early again and again, its idle time (`background.suspend_after`, `hibernate.after`)
  /// doubles each time, up to this. It halves again with each `halvesEvery`. `nil` (`never`): it stays.
  public var maxIdle: Duration?

  public init(
    within: Duration = .seconds(10), bonus: Int = 10, halvesEvery: Duration = .seconds(600),
    maxIdle: Duration? = nil
  ) {
    self.maxIdle = maxIdle
    self.within = within
    self.bonus = bonus
    self.halvesEvery = halvesEvery
  }
}
