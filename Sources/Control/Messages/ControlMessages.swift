// The control socket speaks one JSON object per line. A client sends requests, each with an id of
// its choice. Each request gets exactly one response with the same id, when the action is complete.
// docs/control-protocol.md describes the protocol.

/// A request of a client to the daemon.
public struct ControlRequest: Codable, Hashable, Sendable {
  public var id: UInt64
  public var verb: Verb
  /// The worker's name; nil for verbs that concern all workers.
  public var worker: String?
  /// The worker to start. Only `run` uses it.
  public var launch: LaunchSpecification?
  /// The id of a jetsam report; nil means the newest. Only `jetsam` uses it.
  public var report: String?
  /// The processes to adopt. Only `adopt` uses it.
  public var adoption: AdoptionSpecification?
  /// True to report later events, too, until the client closes the connection. Only `events` uses
  /// it.
  public var follow: Bool?
  /// The state of a wrapped worker. Only `register` uses it.
  public var wrapper: WrapperReport?
  /// True to include the content of the worker's snapshot. Only `status` of one worker uses it.
  public var withSnapshot: Bool?
  /// The level `warning`, `urgent` or `critical`, or `auto` to measure it again. Only `setPressure`
  /// uses it.
  public var level: String?
  /// The duration in seconds. Only `setPressure` and `protect` use it.
  public var seconds: Double?
  /// True if a configuration without workers is intended. Only `reload` uses it.
  public var allowEmpty: Bool?
  /// The time after which the daemon must not execute the request, in nanoseconds of
  /// CLOCK_BOOTTIME.
  public var expires: Int64?

  public init(
    id: UInt64, verb: Verb, worker: String? = nil, launch: LaunchSpecification? = nil,
    report: String? = nil, adoption: AdoptionSpecification? = nil, follow: Bool? = nil
  ) {
    self.adoption = adoption
    self.id = id
    self.verb = verb
    self.worker = worker
    self.launch = launch
    self.report = report
    self.follow = follow
  }

  public enum Verb: String, Codable, Hashable, Sendable, CaseIterable {
    /// `restart` starts a worker that has ended in the same state: it displaces no other worker
    /// from the foreground.
    case run, start, restart, stop, foreground, background, suspend, hibernate, wake, terminate,
      warn, trim, fill
    /// Removes a worker of `run` that has ended, with its log. `removeRunning` stops a running one
    /// first.
    case remove, removeRunning
    /// `shadow` makes the policy log its decisions about a worker without applying them. `enforce`
    /// applies them again.
    case shadow, enforce
    /// `protect` prevents a worker from being terminated for lack of memory, for a time or until
    /// the daemon ends. `unprotect` ends that.
    case protect, unprotect
    /// Report all workers, one worker and the daemon, and a jetsam report.
    case ps, status, jetsam
    /// Writes the journal to disk, responds with its location, and may report later events.
    case events
    /// Explains a worker's state. Without a worker it reports which workers are terminated and
    /// hibernated next.
    case explain
    /// Reports which workers keep memory, and why each isn't asleep.
    case explainSavings
    /// Reports the policy that applies to a worker or the machine, with the origin of each value.
    case policy
    /// `adopt` manages a running process or cgroup that another program has started. `release`
    /// returns it.
    case adopt, release
    /// Reports which processes the adoption rules of the configuration would adopt, and which they
    /// have adopted.
    case previewAdoption
    /// Reports the state of a wrapper's worker (`dormouse wrap`). The report is valid while the
    /// connection exists. Each further report replaces the last.
    case register
    /// Sets the pressure level for a while, so that the policy can be tried.
    case setPressure
    /// Tries what the daemon's kernel and permissions allow, in the daemon's own environment.
    case doctor
    /// Reads the configuration again. Either all of it is applied, or nothing.
    case reload
    /// Only reports what a reload would change. It is a verb of its own because a daemon that
    /// doesn't know it must not execute it as `reload`.
    case previewReload
    /// Makes a worker read its own configuration again (`reload_signal`). It is a verb of its own
    /// for the same reason as `previewReload`.
    case reloadWorker
    /// Stops all workers, and then ends the daemon.
    case shutdown
    /// Ends the daemon. Its workers stay, and the next daemon takes them over.
    case leave
  }
}

/// A worker that isn't in the configuration (`run NAME -- CMD…`).
public struct LaunchSpecification: Codable, Hashable, Sendable {
  /// The program and its arguments. The program's path is absolute, because the client resolves it.
  public var command: [String]
  public var directory: String
  public var environment: [String: String]
  public var importance: Int?
  /// True if the worker gets `NOTIFY_SOCKET`.
  public var notify: Bool?
  /// Keys of a worker's configuration, each as `KEY=VALUE`.
  public var settings: [String]?

  public init(
    command: [String], directory: String, environment: [String: String], importance: Int? = nil,
    notify: Bool? = nil, settings: [String]? = nil
  ) {
    self.command = command
    self.directory = directory
    self.environment = environment
    self.importance = importance
    self.notify = notify
    self.settings = settings
  }
}

/// The daemon's response to a request.
public struct ControlResponse: Codable, Hashable, Sendable {
  public var id: UInt64
  public var result: Result
  /// What happened, or why it didn't, as one sentence.
  public var text: String
  public var workers: [WorkerReport]?
  public var daemon: DaemonReport?
  /// The jetsam report, as it is stored (`jetsam`).
  public var jetsam: JetsamRecord?
  /// The ids of all stored jetsam reports, the newest first (`jetsam`).
  public var reports: [String]?
  /// The location of the journal. It is in the first response to `events`.
  public var journal: JournalLocation?
  /// One event. It is in each further response to `events`.
  public var event: EventRecord?
  /// The response to `explain` with a worker.
  public var explanation: ExplanationReport?
  /// The response to `explain` without a worker.
  public var ranking: RankingReport?
  /// The response to `explainSavings`.
  public var kept: KeptMemoryReport?
  /// All values of the policy, in the order of the documentation (`policy`).
  public var policy: [PolicyValueReport]?
  /// The response to `doctor`.
  public var doctor: DaemonExamination?
  /// The response to `previewAdoption`.
  public var adoption: AdoptionPreviewReport?

  public init(
    id: UInt64, result: Result, text: String, workers: [WorkerReport]? = nil,
    daemon: DaemonReport? = nil, jetsam: JetsamRecord? = nil, reports: [String]? = nil
  ) {
    self.id = id
    self.result = result
    self.text = text
    self.workers = workers
    self.daemon = daemon
    self.jetsam = jetsam
    self.reports = reports
  }

  public enum Result: String, Codable, Hashable, Sendable {
    case done, refused, failed, unknownWorker, badRequest
    /// The line isn't a response: an event has happened. It only follows `events` with `follow`.
    case event
  }
}
