import Control
import Lifecycle
import Linux
import Policy
import PolicyFile

/// What reports are made from, beside what the engine knows. Everything is called on the
/// loop's thread, and calls back there.
protocol ReportSource: AnyObject {
  /// nil: there is no such worker, or it belongs to a wrapper.
  func facts(of id: WorkerID) -> WorkerFacts?
  func daemonFacts() -> DaemonFacts
  func policyFacts() -> PolicyFacts
  /// Of one worker, today and in the last seven days.
  func savings(of id: WorkerID) -> RecentSavingsReport
  /// What happened to a worker since the daemon's start.
  func counters(of id: WorkerID, at now: Instant) -> WorkerCounters
  /// What the daemon measures of itself and of the machine.
  func measurements(at now: Instant) -> DaemonMeasurements

  /// A wrapper has registered a worker of this name, and the daemon has none.
  func isWrapped(_ worker: String?) -> Bool
  /// The engine's worker of this name belongs to a wrapper.
  func leads(_ id: WorkerID) -> Bool
  /// What its wrapper last reported, with the ages that it has now.
  func wrappedReport(of name: String, at now: Instant) -> WorkerReport?
  func wrappedReports(at now: Instant) -> [WorkerReport]

  /// All processes as of now; nil: they can't be found.
  func scanProcesses(then: @escaping (ProcessScan?) -> Void)
  /// As of a moment ago, where that is good enough; nil also where no worker needs it.
  func withRecentScan(then: @escaping (ProcessScan?) -> Void)
  func loadSnapshot(of name: String, then: @escaping (SnapshotStore.Snapshot?) -> Void)

  /// The newest first.
  var jetsamIDs: [String] { get }
  func loadJetsam(_ id: String, then: @escaping (JetsamRecord?) -> Void)
  /// Tries what the machine allows the daemon; that takes a second or more.
  func examineItself(then: @escaping (Result<DaemonExamination, ExaminationFailure>) -> Void)
  /// Called back when everything until now is in the journal's files, with their place.
  func saveJournal(then: @escaping (JournalPlace) -> Void)
}

/// What the verbs do in the daemon.
protocol ControlHost: ReportSource {
  var now: Instant { get }
  var isEnding: Bool { get }
  var isLeaving: Bool { get }
  /// Stops all workers, and ends then.
  func end()
  /// Ends without its workers.
  func leave()

  func isAlive(_ id: WorkerID) -> Bool
  /// The engine's answer; of a worker that an earlier daemon has left, when it is back.
  func request(
    _ verb: Request.Verb, _ id: WorkerID, asked: Instant?, lasting: Duration?,
    then answer: @escaping (Answer) -> Void)
  /// `start` or `restart`, of those that it needs first; answered when it is known whether it stays.
  func start(
    _ id: WorkerID, _ verb: Request.Verb, then answer: @escaping (Answer) -> Void)
  /// A worker that no configuration declares; answered as `start`.
  func launch(
    _ configuration: WorkerConfiguration, environment: [String: String],
    then answer: @escaping (Answer) -> Void)
  /// One that doesn't run, with the log that the daemon keeps of it. `then` gets the reason if a log stays.
  func remove(_ id: WorkerID, then done: @escaping (_ failure: String?) -> Void)
  /// Of an adopted worker: why this isn't done with it.
  func foreignRefusal(_ verb: Request.Verb, _ id: WorkerID) -> String?
  /// The operator requested this: it changes what was planned.
  func personAsks(_ verb: Request.Verb, _ id: WorkerID)
  /// A client waits for it: its work is done before that of others.
  func prioritize(_ id: WorkerID)
  /// The engine then knows how much room the disk has.
  func sendDiskReading(then done: @escaping () -> Void)

  func adopt(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void)
  /// nil: the machine's processes can't be read in time.
  func previewAdoption(then: @escaping (AdoptionPreviewReport?) -> Void)
  func release(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void)
  func reloadWorker(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void)
  func reload(allowEmpty: Bool, then report: @escaping (ReloadOutcome) -> Void)
  func previewReload(allowEmpty: Bool, then report: @escaping (ReloadOutcome) -> Void)

  /// A wrapper has reported; returns why the report is refused, or nil.
  func register(_ wrapper: WrapperReport?, from client: ClientID) -> String?
  /// The client has disconnected. If it was a wrapper, its worker has ended too.
  func hasLeft(_ client: ClientID)
  /// Passes a request on to the wrapper that has the worker.
  func relay(
    _ request: ControlRequest, patience: Duration, then respond: @escaping (ControlResponse) -> Void
  )
}
