/// `background.safe_point:`. What must be over before a worker may be suspended. The engine waits
/// for each condition up to its limit, then continues; `0s` doesn't wait.
public struct SafePointRules: Codable, Hashable, Sendable {
  /// The longest wait for file locks to be released (flock(2), fcntl(2)). Another process that
  /// needs such a lock would wait as long as the worker sleeps.
  public var fileLocks: Duration = .seconds(10)
  /// The longest time that `X_DORMOUSE_HOLD=1` delays a suspension, from entering the background.
  public var hold: Duration = .seconds(600)
  /// The shortest time from launch to a suspension that wasn't requested.
  public var afterLaunch: Duration = .zero
  /// The shortest time from the last wake to a suspension that wasn't requested.
  public var afterWake: Duration = .zero
}

/// `background.heartbeat:`. A sleeping worker may run for a moment at intervals: to answer a
/// keep-alive, or to check the time.
public struct HeartbeatRules: Codable, Hashable, Sendable {
  /// The time from the beginning of the sleep, or the end of the last heartbeat, to the next
  /// heartbeat.
  public var every: Duration
  /// How long the worker runs in a heartbeat.
  public var lasting: Duration
  /// Whether hibernated workers are resumed for it, too.
  public var whileHibernated: Bool

  public init(every: Duration, lasting: Duration, whileHibernated: Bool = false) {
    self.every = every
    self.lasting = lasting
    self.whileHibernated = whileHibernated
  }
}

/// `early_wake:`. A worker that is needed again soon after it was put to sleep wasn't idle. For a
/// while other workers are terminated before it.
public struct EarlyWakeRules: Codable, Hashable, Sendable {
  /// A wake is early if it comes within this time after the suspension, or a start after the
  /// termination. Zero: never.
  public var within: Duration
  /// The points that the worker's band rises each time, within the bands of its state; 0–29.
  public var bonus: Int
  /// The time in which the bonus halves.
  public var halvesEvery: Duration
  /// The idle time of a worker with repeated early wakes (`background.suspend_after`,
  /// `hibernate.after`) doubles each time, up to this. It halves again with each `halvesEvery`.
  /// `nil` (`never`): it isn't raised.
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
