/// A check of a worker that the daemon repeats. The fields and defaults are those of Kubernetes'
/// probes.
public struct Probe: Hashable, Sendable {
  /// How the worker is checked.
  public enum Action: Hashable, Sendable {
    /// Run a command. Success is exit code 0 within the timeout.
    case exec([String])
    /// Send a request. Success is a status in `successes`.
    case http(HTTPRequest)
    /// Open a connection. Success is a connection.
    case tcp(host: String, port: UInt16)
  }

  /// A request over plain HTTP, without a body.
  public struct HTTPRequest: Hashable, Sendable {
    public var method = "GET"
    /// The statuses that count as success. The default is the kubelet's.
    public var successes = 200...399
    public var host: String
    public var port: UInt16
    public var path: String
    public var headers: [Header]

    public struct Header: Hashable, Sendable {
      public var name: String
      public var value: String
      public init(name: String, value: String) {
        self.name = name
        self.value = value
      }
    }

    public init(
      host: String = "127.0.0.1", port: UInt16, path: String = "/", headers: [Header] = []
    ) {
      self.host = host
      self.port = port
      self.path = path
      self.headers = headers
    }
  }

  public var action: Action
  /// The time from launch to the first check.
  public var initialDelay: Duration
  /// The time between the beginnings of two checks.
  public var period: Duration
  /// The time after which a check without a result has failed.
  public var timeout: Duration
  /// Successes in a row after which a failing probe passes. 1 for liveness.
  public var successThreshold: Int
  /// Failures in a row after which a passing probe fails.
  public var failureThreshold: Int

  public init(
    _ action: Action, initialDelay: Duration = .zero, period: Duration = .seconds(10),
    timeout: Duration = .seconds(1), successThreshold: Int = 1, failureThreshold: Int = 3
  ) {
    self.action = action
    self.initialDelay = initialDelay
    self.period = period
    self.timeout = timeout
    self.successThreshold = successThreshold
    self.failureThreshold = failureThreshold
  }
}

/// How a worker shows that it is ready: the section `readiness:`.
public enum ReadinessRule: Hashable, Sendable {
  /// The worker sends `READY=1` to `NOTIFY_SOCKET`.
  case notify
  /// The worker writes a line to this descriptor number of its own (s6's `notification-fd`).
  case notificationDescriptor(Int32)
  /// The worker accepts connections on this port of the loopback interface.
  case tcp(UInt16)
  /// The worker writes a line to its log that contains this text.
  case logLine(String)
  /// The worker writes a line to its log that matches this extended regular expression of POSIX,
  /// which was checked.
  case logPattern(String)
  /// The worker answers a probe. The probe is repeated until then.
  case probe(Probe)
}

/// The verdict over a probe's results. Pure: results in, verdict out.
///
/// A readiness probe begins as failing, a liveness probe as passing, as in Kubernetes. A sleeping
/// worker isn't checked, and its monitor begins with a new state when it runs again.
public struct ProbeState: Hashable, Sendable {
  /// What the probe decides: whether the worker is ready, or whether it must be restarted.
  public enum Purpose: Hashable, Sendable { case readiness, liveness }
  public enum Verdict: Hashable, Sendable { case passing, failing }

  public let probe: Probe
  public private(set) var verdict: Verdict
  /// Results in a row that contradict the verdict.
  public private(set) var streak = 0

  public init(_ probe: Probe, for purpose: Purpose) {
    self.probe = probe
    verdict = purpose == .readiness ? .failing : .passing
  }

  /// Records one result; no result within the timeout is a failure. Returns the new verdict. `nil`:
  /// it hasn't changed.
  public mutating func record(success: Bool) -> Verdict? {
    guard success != (verdict == .passing) else {
      streak = 0
      return nil
    }
    streak += 1
    let threshold = success ? probe.successThreshold : probe.failureThreshold
    guard streak >= max(1, threshold) else { return nil }
    streak = 0
    verdict = success ? .passing : .failing
    return verdict
  }

  /// When to check first, after a launch or a resume.
  public func firstQuestion(after start: Instant) -> Instant { start + probe.initialDelay }

  /// When to check next. Checks don't overlap: a check that takes longer than the period delays the
  /// next one to the following multiple of it.
  public func nextQuestion(after last: Instant, answeredAt now: Instant) -> Instant {
    let period = max(probe.period.wholeNanoseconds, 1_000_000)
    let passed = max((now - last).wholeNanoseconds, 0)
    let periods = (passed + period - 1) / period
    return last + .nanoseconds(max(periods, 1) * period)
  }
}
