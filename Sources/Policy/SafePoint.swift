/// `background.safe_point:`. What must be over before a worker may be suspended. The engine waits for
/// each up to its limit, then continues; `0s` doesn't wait.
public struct SafePointRules: Codable, Hashable, Sendable {
  /// The wait for file locks to be released (flock(2), fcntl(2)): another process that needs one would
  /// wait as long as the worker sleeps.
  public var fileLocks: Duration
  /// The longest time that `X_DORMOUSE_HOLD=1` delays a suspension, from entering the background.
  public var hold: Duration
  /// The shortest time from launch, and from the last wake, to a suspension that wasn't requested.
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

/// `background.heartbeat:`. A sleeping worker may run for a moment at intervals: to answer a
/// keep-alive, or to check the time.
public struct HeartbeatRules: Codable, Hashable, Sendable {
  /// From the beginning of the sleep, or the end of the last heartbeat, to the next one.
  public var every: Duration
  /// How long the worker runs then.
  public var lasting: Duration
  /// Hibernated workers are resumed for it, too.
  public var whileHibernated: Bool

  public init(every: Duration, lasting: Duration, whileHibernated: Bool = false) {
    self.every = every
    self.lasting = lasting
    self.whileHibernated = whileHibernated
  }
}

/// `early_wake:`. A worker that is needed again soon after it was put to sleep wasn't idle; for a while
/// other workers are terminated before it.
public struct EarlyWakeRules: Codable, Hashable, Sendable {
  /// The limit for an early wake: the time from suspension to wake, or from termination to start. Zero:
  /// never.
  public var within: Duration
  /// Points of band that it gains each time, within the bands of its state; 0–29.
  public var bonus: Int
  /// The bonus halves each time that this has passed.
  public var halvesEvery: Duration
  /// The idle time of a worker with repeated early wakes (`background.suspend_after`,
  /// `hibernate.after`) doubles each time, up to this. It halves again with each `halvesEvery`. `nil`
  /// (`never`): it stays.
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
