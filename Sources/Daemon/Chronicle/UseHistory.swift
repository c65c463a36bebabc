import Control
import Lifecycle
import Policy
import Supervision

/// How often each worker is used. A use is traffic, processor time, a wake or a request, as the
/// engine gets them. Signs of use that follow each other closely count as one use.
struct UseHistory {
  /// A shorter pause doesn't end a use: a busy worker is sampled every few seconds.
  static let pause = Duration.seconds(5)
  /// The maximum number of uses that are remembered.
  static let limit = 64

  struct Use: Hashable {
    var began: Instant
    var ended: Instant
  }

  struct Uses {
    let since: Instant
    private(set) var all: [Use] = []
    private(set) var count = 0
    private(set) var last: CodedText?

    fileprivate mutating func add(_ use: CodedText, at now: Instant) {
      last = use
      if let end = all.last?.ended, now - end < UseHistory.pause {
        all[all.count - 1].ended = now
        return
      }
      count += 1
      if all.count == UseHistory.limit { all.removeFirst() }
      all.append(Use(began: now, ended: now))
    }

    /// The median of the times without use between two uses.
    var medianQuiet: Duration? {
      let quiet = zip(all, all.dropFirst()).map { $1.began - $0.ended }.sorted()
      return quiet.isEmpty ? nil : quiet[(quiet.count - 1) / 2]
    }

    /// The time from the beginning of one use to the beginning of the next, if it is nearly always
    /// the same, as for health checks and pings. nil if it varies, or if there are too few uses.
    var period: Duration? {
      let periods = zip(all, all.dropFirst()).map { $1.began - $0.began }.sorted()
      guard periods.count >= Self.minPeriods else { return nil }
      let median = periods[periods.count / 2]
      // A use is noticed up to 2 s late.
      let tolerance = max(median / 10, .seconds(2))
      let usual = periods.count { median - tolerance <= $0 && $0 <= median + tolerance }
      return usual * 5 >= periods.count * 4 ? median : nil
    }
    private static let minPeriods = 8

    /// Uses in an hour; nil if too little time has passed.
    func perHour(at now: Instant) -> Double? {
      guard let first = all.first else { return nil }
      let began = all.count < count ? first.began : since
      let hours = (now - began).seconds / 3600
      return hours >= 1.0 / 60 ? Double(all.count) / hours : nil
    }
  }

  private(set) var all: [WorkerID: Uses] = [:]

  func uses(of worker: WorkerID) -> Uses? { all[worker] }

  mutating func record(_ event: Event, at now: Instant) {
    guard let worker = event.subject else { return }
    if case .removed = event {
      all[worker] = nil
    } else if let use = event.use {
      all[worker, default: Uses(since: now)].add(use, at: now)
    } else if all[worker] == nil {
      all[worker] = Uses(since: now)
    }
  }
}

extension Event {
  /// The sign of use that an event is, in the words of states' causes; nil if it is none.
  fileprivate var use: CodedText? {
    switch self {
    case .activity: CodedText("active", Cause.active.sentence)
    case .worked: CodedText("worked", "processor time without traffic")
    case .wakeNeeded(_, let reason): CodedText(Cause.wakeNeeded(reason))
    case .timerDue(_, let reason): CodedText(Cause.timer(reason))
    case .request(let request)
    where request.verb == .wake || request.verb == .foreground:
      CodedText(Cause.requested(request.verb))
    default: nil
    }
  }
}

extension ActivityReport {
  /// - Parameters:
  ///   - launchedAt: when this run began; `.zero` if an earlier daemon launched it.
  ///   - sign: what showed the last use, if a sample of the worker showed it.
  ///   - source: where traffic came from.
  ///   - isServer: whether the worker listens at a port, so that its uses may be health checks.
  init(
    _ uses: UseHistory.Uses, policy: LifecyclePolicy, launchedAt: Instant = .zero,
    sign: SignOfUse? = nil, source: TrafficSource? = nil, isServer: Bool = true, at now: Instant
  ) {
    self.init(uses: uses.count, overSeconds: (now - uses.since).seconds)
    if launchedAt > uses.since { launchedSecondsAgo = (now - launchedAt).seconds }
    if let ended = uses.all.last?.ended, ended >= launchedAt {
      last = uses.last
      if let code = last?.code, [Cause.active.code, "worked"].contains(code), let sign {
        last?.text = sign.text(from: source)
      }
      lastSecondsAgo = (now - ended).seconds
    }
    perHour = uses.perHour(at: now)
    medianQuietSeconds = uses.medianQuiet?.seconds
    if uses.count >= Self.minUses, let quiet = uses.medianQuiet {
      advice = Advice(quiet, policy, period: isServer ? uses.period : nil)
    }
  }

  /// The minimum number of uses for advice. Fewer don't show what is usual.
  private static let minUses = 5
}

extension ActivityReport.Advice {
  /// Names the key that keeps a worker with such quiet times awake or in memory; nil if there is
  /// none.
  ///
  /// - Parameter period: the interval of the worker's uses, if it is regular, as with health
  ///   checks.
  init?(_ quiet: Duration, _ policy: LifecyclePolicy, period: Duration? = nil) {
    let usual = "the median time between its uses is \(quiet.text)"
    let idle = policy.foreground.mode == .activity ? policy.foreground.idleAfter : .zero
    guard let suspend = policy.background.suspendAfter else {
      self.init(
        code: "suspend_after_never", key: "background.suspend_after",
        text: "\(usual): with background.suspend_after under that, it would sleep between uses")
      return
    }
    if quiet <= idle + suspend {
      if let period {
        self.init(
          code: "regular_use", key: "health_checks_while_asleep",
          text: "it is used every \(period.text): if those are health checks, name their port in "
            + "health_checks_while_asleep, and they don't keep it awake")
        return
      }
      let (key, time) =
        quiet <= idle || idle >= suspend
        ? ("foreground.idle_after", idle) : ("background.suspend_after", suspend)
      self.init(
        code: "quiet_too_short", key: key,
        text: "\(usual), and \(key) is \(time.text): with a shorter one, it would sleep between "
          + "more of its uses")
      return
    }
    guard policy.hibernate.enabled, let hibernate = policy.hibernate.after,
      quiet <= idle + suspend + hibernate
    else { return nil }
    self.init(
      code: "quiet_too_short", key: "hibernate.after",
      text:
        "\(usual), and hibernate.after is \(hibernate.text) more than its suspension: with a "
        + "shorter one, it would be hibernated between more of its uses")
  }
}
