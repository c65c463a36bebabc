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
  /// `setPressure` only: `warning`, `urgent`, `critical`, or `auto`; and for how many seconds.
  public var level: String?
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
    /// Only reports what the policy would do with a worker; applies the policy again.
    case shadow, enforce
    case ps, status, jetsam
    /// Writes the journal, answers where it is, and may report later events.
    case events
    /// With a worker: why it is in its state; without: which worker is next.
    case explain
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

  public init(
    command: [String], directory: String, environment: [String: String], importance: Int? = nil,
    notify: Bool? = nil
  ) {
    self.command = command
    self.directory = directory
    self.environment = environment
    self.importance = importance
    self.notify = notify
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
  /// How old `reclaimable` and, while the worker runs, `footprint` are; nil: neither has been measured.
  public var measuredSecondsAgo: Double?
  /// While it is hibernated: what it holds on disk.
  public var imageSize: Int64?
  /// While it isn't: what stays on disk of its last image, for the next one to build on.
  public var baseSize: Int64?
  public var secondsInState: Double
  public var secondsSinceUse: Double
  /// With which it was launched, where it runs.
  public var command: [String]
  /// Its configuration has changed in these keys since: they apply when it is started again.
  public var changedSinceLaunch: [String]?
  public var policy: String
  public var log: String?
  /// When its log had which length: a line for each note, with seconds since 1970 and bytes.
  public var logTimes: String?
  /// Why it is in this state.
  public var reason: CodedText
  /// Why it isn't hibernated, where it isn't.
  public var hibernation: CodedText?
  public var launchSeconds: Double?
  public var resumeSeconds: Double?
  /// Its last hibernation: how long it took, what was written to disk for it, and how much of its memory
  /// was there already, unchanged.
  public var hibernateSeconds: Double?
  public var hibernateWritten: Int64?
  public var hibernateUnchanged: Int64?
  /// While it is hibernated: how many bytes smaller its footprint is than right before.
  public var saved: Int64?
  /// Today, and in the last seven days; `status` of one worker only.
  public var savings: RecentSavingsReport?
  /// What the last request to give memory back achieved.
  public var lastShed: ShedReport?
  /// The last watchdog's deadline that it missed.
  public var lastMiss: CodedText?
  /// Put away too early, how often, and what that has earned it.
  public var earlyWake: EarlyWakeReport?
  /// What shadow mode would have done with it.
  public var shadow: ShadowReport?
  /// On offer to be taken.
  public var purgeable: Int64?
  /// What it last said of itself (sd_notify's `STATUS=`).
  public var says: String?
  /// What it wants to be shown of it, above all while it sleeps; `status` of one worker only.
  public var snapshot: SnapshotReport?
  /// The number of connections over which it uses the worker protocol (`DORMOUSE_WORKER_SOCKET`).
  public var connections: Int?
  /// What came of that which had no effect: answers that were late, or to nothing; connections that were
  /// turned away. A sentence.
  public var talk: CodedText?
  /// How it is resumed from an image, and why.
  public var resume: CodedText?
  public var lastExit: ExitStatusReport?
  /// Bytes of its processes that are in swap; only in `status`.
  public var swapped: Int64?
  /// How its last runs ended, the latest last.
  public var exits: [ExitReport]?
  /// Automatic restarts since the worker was last started by request.
  public var restarts: Int?
  /// While it backs off: seconds until it is started again.
  public var restartsInSeconds: Double?
  /// While it waits for other workers before it is started: their names.
  public var waitsFor: [String]?
  /// Why its probe of liveness failed, where the last answer was a failure.
  public var livenessFailure: CodedText?
  /// When its schedule wakes it next, in seconds since 1970.
  public var nextWake: Int64?
  /// Health checks that were answered for it since it fell asleep.
  public var answeredAsleep: Int?
  /// The signal that makes it read its configuration again: `SIGHUP`.
  public var reloadSignal: String?
  /// The cgroup that its processes are in, where it has one of its own; in `status`, with what the
  /// kernel counts of it.
  public var cgroup: CgroupReport?
  public var tasks: [String]
  /// Another program has started it, and supervises it.
  public var isAdopted: Bool?
  /// The rule of `adopt:` by which that was done.
  public var rule: String?
  /// The process of `dormouse wrap` that it belongs to.
  public var wrapper: Int32?
  /// Of a wrapped worker: the program that started its wrapper, or its terminal.
  public var host: String?
  /// Of a wrapped worker: where its wrapper was started, usually the project's directory.
  public var directory: String?
  /// How often it has been woken; reported of wrapped workers.
  public var wakes: Int?
  /// What happened to it since the daemon started; only in `status`.
  public var counters: WorkerCounters?

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
    reason = CodedText("other", "")
    tasks = []
  }
}

/// How one run of a worker ended.
public struct ExitReport: Codable, Hashable, Sendable {
  /// Seconds since 1970.
  public var at: Int64
  public var why: CodedText
  /// Bytes, as last measured.
  public var footprint: Int64
  /// The last line of its log.
  public var lastWords: String?

  public init(at: Int64, why: CodedText, footprint: Int64, lastWords: String? = nil) {
    self.at = at
    self.why = why
    self.footprint = footprint
    self.lastWords = lastWords
  }
}

/// The daemon itself, and the machine.
public struct DaemonReport: Codable, Hashable, Sendable {
  public var pid: Int32
  public var version: String
  public var policy: String
  public var mode: String
  public var pressure: String
  /// The level that was set by request; seconds until it is measured again.
  public var pressureSet: String?
  public var pressureSetSeconds: Double?
  /// Bytes: the budget (the host's memory, or the device's), and what of it is available.
  public var budget: Int64
  public var available: Int64
  public var budgetIsHost: Bool
  /// How workers are suspended: `cgroup-v2 freezer` or `SIGSTOP`.
  public var freezer: CodedText
  public var stateDirectory: String
  /// What shadow mode would have done with all workers.
  public var shadow: ShadowReport?
  /// The last 24 hours' hibernations: bytes written to images, of how many that may be; how long they
  /// took together; how many there were.
  public var writtenInDay: Int64?
  public var dailyWrites: Int64?
  public var hibernatingSecondsInDay: Double?
  public var imagesInDay: Int64?
  /// Of all workers, today and in the last seven days.
  public var savings: RecentSavingsReport?
  /// For programs that draw curves; only in `status`.
  public var measurements: DaemonMeasurements?

  public init(
    pid: Int32, version: String, policy: String, mode: String, pressure: String, budget: Int64,
    available: Int64, budgetIsHost: Bool, freezer: CodedText, stateDirectory: String
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

/// A jetsam report: one burst of terminations for memory.
public struct JetsamRecord: Codable, Hashable, Sendable {
  public var id: String
  /// Wall clock, ISO 8601.
  public var time: String
  public var policy: String
  public var level: String
  public var why: CodedText
  public var budget: Int64
  public var availableBefore: Int64
  public var availableAfter: Int64
  public var largest: String?
  public var workers: [Entry]
  /// The machine's memory when the first victim was chosen.
  public var host: Host?

  /// Sizes in bytes.
  public struct Host: Codable, Hashable, Sendable {
    public var total: Int64
    public var free: Int64
    /// What the kernel can take back without swapping.
    public var reclaimable: Int64
    /// The kernel's own, and what is locked.
    public var wired: Int64
    /// The footprints of all workers.
    public var workers: Int64
    /// Share of the time stalled on memory, 0–100 %; nil without PSI.
    public var someStall: Double?
    public var fullStall: Double?

    public init(
      total: Int64, free: Int64, reclaimable: Int64, wired: Int64, workers: Int64,
      someStall: Double? = nil, fullStall: Double? = nil
    ) {
      self.total = total
      self.free = free
      self.reclaimable = reclaimable
      self.wired = wired
      self.workers = workers
      self.someStall = someStall
      self.fullStall = fullStall
    }
  }

  public struct Entry: Codable, Hashable, Sendable {
    public var name: String
    public var state: String
    public var band: Int
    public var footprint: Int64
    public var peakFootprint: Int64
    public var secondsSinceUse: Double
    /// Since its launch, or since it was adopted.
    public var secondsOfAge: Double?
    /// Set where this worker was terminated: why it was chosen.
    public var victimBecause: CodedText?
    public var gaveBack: Int64?

    public init(
      name: String, state: String, band: Int, footprint: Int64, peakFootprint: Int64,
      secondsSinceUse: Double, secondsOfAge: Double? = nil, victimBecause: CodedText? = nil,
      gaveBack: Int64? = nil
    ) {
      self.name = name
      self.state = state
      self.band = band
      self.footprint = footprint
      self.peakFootprint = peakFootprint
      self.secondsSinceUse = secondsSinceUse
      self.secondsOfAge = secondsOfAge
      self.victimBecause = victimBecause
      self.gaveBack = gaveBack
    }
  }

  public init(
    id: String, time: String, policy: String, level: String, why: CodedText, budget: Int64,
    availableBefore: Int64, availableAfter: Int64, largest: String?, workers: [Entry],
    host: Host? = nil
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
    self.host = host
  }
}
