import Control
import Lifecycle
import Linux
import Policy
import PolicyFile
import Testing

@testable import Daemon

/// A daemon whose workers are what a test says, and that answers when a test says so.
final class FakeControlHost: ControlHost {
  let timers = FakeTimers()
  let driver: EngineDriver
  private let executor = NoExecutor()

  var isEnding = false
  var isLeaving = false
  var known: [WorkerID: WorkerFacts] = [:]
  var wrapped: Set<String> = []
  var refusals: [WorkerID: String] = [:]
  var whyLogStays: String?
  var registration: String?
  var jetsamIDs: [String] = []

  /// What was asked of it, in order: `verb worker`.
  private(set) var calls: [String] = []
  private(set) var launched: [(configuration: WorkerConfiguration, environment: [String: String])] =
    []
  private var answers: [(Answer) -> Void] = []
  private var responses: [(ControlResponse) -> Void] = []
  private var readings: [() -> Void] = []
  private var journals: [(JournalPlace) -> Void] = []
  private var loads: [(JetsamRecord?) -> Void] = []
  private var snapshots: [(SnapshotStore.Snapshot?) -> Void] = []
  private var previews: [(AdoptionPreviewReport?) -> Void] = []
  private var outcomes: [(ReloadOutcome) -> Void] = []
  private var examinations: [(Result<DaemonExamination, ExaminationFailure>) -> Void] = []

  private final class NoExecutor: DirectiveExecutor {
    func execute(_ directive: Directive) {}
    func engineIsQuiet() {}
  }

  init() {
    driver = EngineDriver(
      Engine(policy: LifecyclePolicy(name: "test")), clock: timers,
      replies: RequestReplies(FakeSavedState(), timers: timers))
    driver.connect(executor, [])
  }

  /// In this state, as an earlier daemon has left it.
  func add(_ name: String, _ state: WorkerState = .background) {
    let id = WorkerID(name)
    let policy = LifecyclePolicy(name: "test")
    known[id] = WorkerFacts(policy: policy)
    driver.send(.adopted(id, WorkerProfile(policy: policy), state))
  }

  // MARK: what a test answers

  func answer(_ code: Answer.Code, _ text: String) { first(&answers)?(Answer(code, text)) }
  func respond(_ result: ControlResponse.Result, _ text: String, _ workers: [WorkerReport]? = nil) {
    first(&responses)?(ControlResponse(id: 7, result: result, text: text, workers: workers))
  }
  func examine(_ outcome: Result<DaemonExamination, ExaminationFailure>) {
    first(&examinations)?(outcome)
  }
  func readDisk() { first(&readings)?() }
  func saveJournal(at place: JournalPlace) { first(&journals)?(place) }
  func load(_ record: JetsamRecord?) { first(&loads)?(record) }
  func load(_ snapshot: SnapshotStore.Snapshot?) { first(&snapshots)?(snapshot) }
  func preview(_ report: AdoptionPreviewReport?) { first(&previews)?(report) }
  func report(_ outcome: ReloadOutcome) { first(&outcomes)?(outcome) }

  private func first<Value>(_ waiting: inout [Value]) -> Value? {
    guard waiting.isEmpty else { return waiting.removeFirst() }
    Issue.record("it was asked for nothing")
    return nil
  }

  /// Nothing that was asked is left without an answer.
  var isQuiet: Bool {
    answers.isEmpty && responses.isEmpty && readings.isEmpty && journals.isEmpty && loads.isEmpty
      && snapshots.isEmpty && outcomes.isEmpty && examinations.isEmpty
  }

  // MARK: reports

  var now: Instant { timers.now }
  func facts(of id: WorkerID) -> WorkerFacts? { known[id] }
  func daemonFacts() -> DaemonFacts {
    DaemonFacts(
      version: "1.2.3", freezer: CodedText("sigstop", "SIGSTOP"), stateDirectory: "/state",
      imageCosts: WriteLedger.Costs())
  }

  func savings(of id: WorkerID) -> RecentSavingsReport {
    let none = SavingsReport(byteHours: 0, asleepSeconds: 0, aliveSeconds: 0, resumes: 0)
    return RecentSavingsReport(today: none, week: none)
  }
  func policyFacts() -> PolicyFacts { PolicyFacts(origins: Origins()) }
  func counters(of id: WorkerID, at now: Instant) -> WorkerCounters {
    var counters = WorkerCounters()
    counters.launches = 3
    return counters
  }
  func measurements(at now: Instant) -> DaemonMeasurements { DaemonMeasurements(upSeconds: 60) }
  func isWrapped(_ worker: String?) -> Bool { worker.map(wrapped.contains) ?? false }
  func leads(_ id: WorkerID) -> Bool { wrapped.contains(id.name) }
  func wrappedReport(of name: String, at now: Instant) -> WorkerReport? {
    wrapped.contains(name) ? WorkerReport(name: name, state: "background") : nil
  }
  func wrappedReports(at now: Instant) -> [WorkerReport] {
    wrapped.sorted().map { WorkerReport(name: $0, state: "background") }
  }
  func scanProcesses(then: @escaping (ProcessScan?) -> Void) { then(nil) }
  func withRecentScan(then: @escaping (ProcessScan?) -> Void) { then(nil) }
  func loadSnapshot(of name: String, then: @escaping (SnapshotStore.Snapshot?) -> Void) {
    calls.append("snapshot \(name)")
    snapshots.append(then)
  }
  func loadJetsam(_ id: String, then: @escaping (JetsamRecord?) -> Void) {
    calls.append("jetsam \(id)")
    loads.append(then)
  }
  func saveJournal(then: @escaping (JournalPlace) -> Void) { journals.append(then) }

  // MARK: verbs

  func end() {
    calls.append("end")
    isEnding = true
  }
  func leave() {
    calls.append("leave")
    isLeaving = true
  }
  func isAlive(_ id: WorkerID) -> Bool { driver.state.state(of: id)?.isAlive == true }
  func request(
    _ verb: Request.Verb, _ id: WorkerID, asked: Instant?, lasting: Duration?,
    then answer: @escaping (Answer) -> Void
  ) {
    calls.append("\(verb) \(id)\(lasting.map { " for \($0.seconds) s" } ?? "")")
    answers.append(answer)
  }
  func start(_ id: WorkerID, _ verb: Request.Verb, then answer: @escaping (Answer) -> Void) {
    calls.append("\(verb) \(id) with those that it needs")
    answers.append(answer)
  }
  func launch(
    _ configuration: WorkerConfiguration, environment: [String: String],
    then answer: @escaping (Answer) -> Void
  ) {
    calls.append("launch \(configuration.name)")
    launched.append((configuration, environment))
    answers.append(answer)
  }
  func remove(_ id: WorkerID, then done: @escaping (_ failure: String?) -> Void) {
    calls.append("remove \(id)")
    done(whyLogStays)
  }
  func foreignRefusal(_ verb: Request.Verb, _ id: WorkerID) -> String? { refusals[id] }
  func personAsks(_ verb: Request.Verb, _ id: WorkerID) { calls.append("person: \(verb) \(id)") }
  func prioritize(_ id: WorkerID) { calls.append("prioritize \(id)") }
  func examineItself(
    then: @escaping (Result<DaemonExamination, ExaminationFailure>) -> Void
  ) {
    calls.append("examine")
    examinations.append(then)
  }
  func sendDiskReading(then done: @escaping () -> Void) {
    calls.append("read the disk")
    readings.append(done)
  }
  private func pass(
    _ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void
  ) {
    calls.append("\(request.verb) \(request.worker ?? "")")
    responses.append(respond)
  }
  func adopt(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    pass(request, then: respond)
  }
  func release(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    pass(request, then: respond)
  }
  func previewAdoption(then: @escaping (AdoptionPreviewReport?) -> Void) { previews.append(then) }
  func reloadWorker(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    pass(request, then: respond)
  }
  func reload(allowEmpty: Bool, then report: @escaping (ReloadOutcome) -> Void) {
    calls.append("reload\(allowEmpty ? " --allow-empty" : "")")
    outcomes.append(report)
  }
  func previewReload(allowEmpty: Bool, then report: @escaping (ReloadOutcome) -> Void) {
    calls.append("preview\(allowEmpty ? " --allow-empty" : "")")
    outcomes.append(report)
  }
  func register(_ wrapper: WrapperReport?, from client: ClientID) -> String? {
    calls.append("register \(client.number)")
    return registration
  }
  func hasLeft(_ client: ClientID) { calls.append("client \(client.number) has left") }
  func relay(
    _ request: ControlRequest, patience: Duration,
    then respond: @escaping (ControlResponse) -> Void
  ) {
    calls.append("relay \(request.verb) \(request.worker ?? "") for \(patience)")
    responses.append(respond)
  }
}
