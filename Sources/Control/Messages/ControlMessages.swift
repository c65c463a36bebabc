// The control socket speaks one JSON object a line. A client sends requests, each with an id of
// its choice; each gets exactly one response with the same id, when the thing has happened.

/// What a client asks of the daemon.
public struct ControlRequest: Codable, Hashable, Sendable {
  public var id: UInt64
  public var verb: Verb
  /// The worker concerned; nil for verbs that concern all.
  public var worker: String?
  /// `run` only.
  public var launch: LaunchSpecification?
  /// `jetsam` only: which report; nil for the newest.
  public var report: String?
  /// `adopt` only.
  public var adoption: AdoptionSpecification?
  /// `events` only: later events are reported too, until the client hangs up.
  public var follow: Bool?
  /// `register` only.
  public var wrapper: WrapperReport?
  /// `status` of a worker only: its snapshot's content is wanted too.
  public var withSnapshot: Bool?
  /// `setPressure` only: `warning`, `urgent`, `critical`, or `auto`.
  public var level: String?
  /// `setPressure` and `protect` only: for how long.
  public var seconds: Double?
  /// `reload` only: a configuration without workers is meant.
  public var allowEmpty: Bool?
  /// After this the request is not to be carried out any more: nanoseconds of CLOCK_BOOTTIME.
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
    /// `restart` starts a worker that has ended, where it was: it displaces no other from the foreground.
    case run, start, restart, stop, foreground, background, suspend, hibernate, wake, terminate,
      warn
    /// Forgets a worker of `run` that has ended, with its log; one that runs is stopped first.
    case remove, removeRunning
    /// Only reports what the policy would do with a worker; applies the policy again.
    case shadow, enforce
    /// Doesn't terminate a worker for lack of memory, for a time or until the daemon ends; leaves that to its policy again.
    case protect, unprotect
    case ps, status, jetsam
    /// Writes the journal, answers where it is, and may report later events.
    case events
    /// With a worker: why it is in its state; without: which worker is next.
    case explain
    /// Which workers keep memory, and why each isn't asleep.
    case explainSavings
    /// The policy in force, of a worker or of the machine, with the origin of each value.
    case policy
    /// Takes a running process or cgroup that another program has started into the life cycle, and gives it
    /// back.
    case adopt, release
    /// Which processes the rules of the configuration would take, and which they have.
    case previewAdoption
    /// A wrapper (`dormouse wrap`) reports its worker's state. The report is valid as long as this connection
    /// exists; each further report replaces the last.
    case register
    /// Sets the level of pressure for a while, so that the policy can be tried.
    case setPressure
    /// Tries what the machine allows the daemon, where and as it runs.
    case doctor
    /// Reads the configuration again: all of it is taken, or nothing.
    case reload
    /// Only reports what a reload would change. A verb of its own: a daemon that doesn't know it must not
    /// execute it as `reload`.
    case previewReload
    /// Makes a worker read its own configuration again (`reload_signal`); a verb of its own for the same
    /// reason.
    case reloadWorker
    /// Ends the daemon; workers are stopped first.
    case shutdown
    /// Ends the daemon, and leaves its workers to the next one.
    case leave
  }
}

/// `run NAME -- CMD…`: a worker that isn't in the configuration.
public struct LaunchSpecification: Codable, Hashable, Sendable {
  /// Absolute, or looked up in the client's PATH by the client.
  public var command: [String]
  public var directory: String
  public var environment: [String: String]
  public var importance: Int?
  /// It gets `NOTIFY_SOCKET`.
  public var notify: Bool?
  /// Keys of a worker in the configuration, each `KEY=VALUE`.
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

/// What the daemon answers.
public struct ControlResponse: Codable, Hashable, Sendable {
  public var id: UInt64
  public var result: Result
  /// One sentence: what happened, or why it didn't.
  public var text: String
  public var workers: [WorkerReport]?
  public var daemon: DaemonReport?
  /// `jetsam`: the report, as it is stored.
  public var jetsam: JetsamRecord?
  /// `jetsam`: the ids of all reports that are kept, the newest first.
  public var reports: [String]?
  /// `events`: the first response says where the journal is, and each further response has one event.
  public var journal: JournalPlace?
  public var event: EventRecord?
  /// `explain` with a worker, and without.
  public var explanation: ExplanationReport?
  public var ranking: RankingReport?
  /// `explainSavings`
  public var kept: KeptMemoryReport?
  /// `policy`: every value, in the order of the documentation.
  public var policy: [PolicyValueReport]?
  public var doctor: DaemonExamination?
  /// `previewAdoption`
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
    /// No answer: something has happened. Only after `events` with `follow`.
    case event
  }
}
