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

  public init(
    id: UInt64, verb: Verb, worker: String? = nil, launch: LaunchSpecification? = nil,
    report: String? = nil
  ) {
    self.id = id
    self.verb = verb
    self.worker = worker
    self.launch = launch
    self.report = report
  }

  public enum Verb: String, Codable, Hashable, Sendable, CaseIterable {
    case run, start, stop, foreground, background, suspend, hibernate, wake, terminate, warn
    case ps, status, jetsam
    /// Reads the configuration again: all of it is taken, or nothing.
    case reload
    /// Ends the daemon; workers are stopped first.
    case shutdown
  }
}

/// `run NAME -- CMD…`: a worker that isn't in the configuration.
public struct LaunchSpecification: Codable, Hashable, Sendable {
  /// Absolute, or looked up in the client's PATH by the client.
  public var command: [String]
  public var directory: String
  public var environment: [String: String]
  public var importance: Int?

  public init(
    command: [String], directory: String, environment: [String: String], importance: Int? = nil
  ) {
    self.command = command
    self.directory = directory
    self.environment = environment
    self.importance = importance
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
  }
}

/// One worker, for `ps` and `status`. Sizes in bytes, times in seconds.
public struct WorkerReport: Codable, Hashable, Sendable {
  public var name: String
  public var state: String
  public var band: Int
  public var importance: Int
  public var pid: Int32?
  public var processes: Int
  public var footprint: Int64
  public var peakFootprint: Int64
  /// Private and shared clean file pages that the kernel can take back by itself.
  public var reclaimable: Int64
  public var imageSize: Int64?
  public var secondsInState: Double
  public var secondsSinceUse: Double
  public var command: [String]
  public var policy: String
  public var log: String?
  /// Why it is in this state.
  public var reason: String
  /// Why it isn't hibernated, where it isn't.
  public var hibernation: String?
  public var launchSeconds: Double?
  public var resumeSeconds: Double?
  /// What the last request to give memory back achieved.
  public var lastShed: String?
  /// What it last said of itself (sd_notify's `STATUS=`).
  public var says: String?
  /// How it is resumed from an image, and why.
  public var resume: String?
  public var lastExit: String?
  public var tasks: [String]

  public init(name: String, state: String) {
    self.name = name
    self.state = state
    band = 0
    importance = 0
    processes = 0
    footprint = 0
    peakFootprint = 0
    reclaimable = 0
    secondsInState = 0
    secondsSinceUse = 0
    command = []
    policy = ""
    reason = ""
    tasks = []
  }
}

/// The daemon itself, and the machine.
public struct DaemonReport: Codable, Hashable, Sendable {
  public var pid: Int32
  public var version: String
  public var policy: String
  public var mode: String
  public var pressure: String
  /// Bytes: the budget (the host's memory, or the device's), and what of it is available.
  public var budget: Int64
  public var available: Int64
  public var budgetIsHost: Bool
  /// How workers are suspended: `cgroup-v2 freezer` or `SIGSTOP`.
  public var freezer: String
  public var stateDirectory: String

  public init(
    pid: Int32, version: String, policy: String, mode: String, pressure: String, budget: Int64,
    available: Int64, budgetIsHost: Bool, freezer: String, stateDirectory: String
  ) {
    self.pid = pid
    self.version = version
    self.policy = policy
    self.mode = mode
    self.pressure = pressure
    self.budget = budget
    self.available = available
    self.budgetIsHost = budgetIsHost
    self.freezer = freezer
    self.stateDirectory = stateDirectory
  }
}

/// A low memory report: one burst of terminations for memory.
public struct JetsamRecord: Codable, Hashable, Sendable {
  public var id: String
  /// Wall clock, ISO 8601.
  public var time: String
  public var policy: String
  public var level: String
  public var why: String
  public var budget: Int64
  public var availableBefore: Int64
  public var availableAfter: Int64
  public var largest: String?
  public var workers: [Entry]

  public struct Entry: Codable, Hashable, Sendable {
    public var name: String
    public var state: String
    public var band: Int
    public var footprint: Int64
    public var peakFootprint: Int64
    public var secondsSinceUse: Double
    /// Set where this worker was terminated: why it was chosen.
    public var victimBecause: String?
    public var gaveBack: Int64?

    public init(
      name: String, state: String, band: Int, footprint: Int64, peakFootprint: Int64,
      secondsSinceUse: Double, victimBecause: String? = nil, gaveBack: Int64? = nil
    ) {
      self.name = name
      self.state = state
      self.band = band
      self.footprint = footprint
      self.peakFootprint = peakFootprint
      self.secondsSinceUse = secondsSinceUse
      self.victimBecause = victimBecause
      self.gaveBack = gaveBack
    }
  }

  public init(
    id: String, time: String, policy: String, level: String, why: String, budget: Int64,
    availableBefore: Int64, availableAfter: Int64, largest: String?, workers: [Entry]
  ) {
    self.id = id
    self.time = time
    self.policy = policy
    self.level = level
    self.why = why
    self.budget = budget
    self.availableBefore = availableBefore
    self.availableAfter = availableAfter
    self.largest = largest
    self.workers = workers
  }
}
