import Control
import Lifecycle
import Linux
import Policy
import PolicyFile

@testable import Daemon
@testable import Simulation

/// Clients of the real `ControlService`, which ask, leave, and come again. It counts the answers of each request.
final class ShellClients: EventRecipients, EventSource {
  private unowned let world: ShellWorld
  private let host: ShellControlHost
  private lazy var service = ControlService(
    driver: world.driver, host: host, following: EventFollowing(self, self),
    status: StatusReporter(world.driver, host, clock: world.clock), log: world.processes.log)
  private var clients = (0..<3).map { ClientID(number: $0) }
  private var lastClient: UInt64 = 2
  private var answers: [(verb: ControlRequest.Verb, count: Int, isClosed: Bool)] = []
  private var receivers: [Int: (EventRecord) -> Bool] = [:]
  private var followings = 0

  init(_ world: ShellWorld) {
    self.world = world
    host = ShellControlHost(world)
  }

  /// Those that a worker's client may send.
  private static let verbs = Request.Verb.allCases.compactMap {
    ControlRequest.Verb(rawValue: $0.rawValue)
  }
  private static let others: [ControlRequest.Verb] = [
    .ps, .status, .explain, .policy, .events, .jetsam, .setPressure, .previewReload,
  ]

  func askSomething(of id: WorkerID, using random: inout SplitMix64) {
    let isOther = random.chance(12)
    var request = ControlRequest(
      id: UInt64(answers.count), verb: random.pick(isOther ? Self.others : Self.verbs),
      worker: random.chance(2) ? "unknown" : random.chance(2) ? nil : id.name)
    if world.driver.state.state(of: id) == .suspended, random.chance(20) {
      request.verb = .hibernate
    }
    request.follow = random.chance(30)
    request.level = random.pick(["warning", "auto"])
    request.seconds = 5
    if random.chance(3) { request.expires = world.clock.now.nanoseconds - 1 }
    let client = random.pick(clients)
    send(request, from: client)
    if random.chance(10) { world.after(.seconds(1)) { [self] in leave(client) } }
  }

  func ask(_ verb: ControlRequest.Verb, _ id: WorkerID) {
    send(
      ControlRequest(id: UInt64(answers.count), verb: verb, worker: id.name), from: clients[0])
  }

  /// The configuration is read again.
  func askReload(allowEmpty: Bool) {
    var request = ControlRequest(id: UInt64(answers.count), verb: .reload)
    request.allowEmpty = allowEmpty
    send(request, from: clients[0])
  }

  /// A worker that no configuration declares.
  func askRun(_ name: String, importance: Int) {
    world.count("ran")
    var request = ControlRequest(id: UInt64(answers.count), verb: .run, worker: name)
    request.launch = LaunchSpecification(
      command: [name], directory: "/", environment: [:], importance: importance)
    send(request, from: clients[1])
  }

  func askAdopt(_ name: String, mayBeTerminated: Bool) {
    var request = ControlRequest(id: UInt64(answers.count), verb: .adopt, worker: name)
    request.adoption = AdoptionSpecification(pid: 100, mayBeTerminated: mayBeTerminated)
    send(request, from: clients[2])
  }

  func askToLeave() { service.end(by: .leave) }

  /// Some had no answer when the daemon ended.
  private(set) var wereCutOff = false

  /// As `ControlServer` does it: what has no answer yet gets one.
  func announceEnd() {
    for number in answers.indices where answers[number].count == 0 {
      world.count("answered at the end")
      wereCutOff = true
      answers[number].count = 1
      answers[number].isClosed = true
    }
  }

  private func send(_ request: ControlRequest, from client: ClientID) {
    let number = answers.count
    answers.append((request.verb, 0, false))
    service.handle(request, from: client) { [unowned self] response in
      if response.id != request.id { world.complain("request \(number): another's answer") }
      if !answers[number].isClosed { answers[number].count += 1 }
    }
  }

  /// Its place is taken by another one.
  private func leave(_ client: ClientID) {
    guard let place = clients.firstIndex(of: client) else { return }
    world.count("client left")
    service.hasLeft(client)
    lastClient += 1
    clients[place] = ClientID(number: lastClient)
  }

  /// Requests that weren't answered exactly once.
  var omissions: [String] {
    answers.enumerated().filter { $1.count != 1 }.map { number, request in
      "request \(number) (\(request.verb)) was answered \(request.count) times"
    }
  }

  // MARK: events

  func happened(_ transition: Transition) {
    if receivers.isEmpty { return }
    let event = EventRecord(time: "now", kind: "state", text: transition.to.rawValue)
    for (number, receive) in receivers.sorted(by: { $0.key < $1.key }) where !receive(event) {
      receivers[number] = nil
    }
  }

  func follow(worker: String?, receive: @escaping (EventRecord) -> Bool) -> () -> Void {
    followings += 1
    let number = followings
    receivers[number] = receive
    return { [weak self] in self?.receivers[number] = nil }
  }

  func unreadBytes(of client: ClientID) -> Int? {
    clients.contains(client) ? world.pick([0, EventFollowing.maxUnread + 1]) : nil
  }

  func send(_ response: ControlResponse, to client: ClientID) {
    world.count("event sent")
    if !clients.contains(client) { world.complain("an event is sent to a client that has left") }
  }
}

/// What `ControlService` gets of the simulated daemon: as `ControlOfDaemon`, over services that lag, and repeat their
/// outcomes. None of them loses one: each has a deadline of its own in the daemon.
private final class ShellControlHost: ControlHost {
  private unowned let world: ShellWorld
  init(_ world: ShellWorld) { self.world = world }

  private func later<Value>(_ value: Value, _ then: @escaping (Value) -> Void) {
    world.after(.milliseconds(50), rarely: .seconds(10)) { [self] in
      then(value)
      if world.chance(4) { world.after(.seconds(20)) { then(value) } }
    }
  }

  // MARK: reports

  func facts(of id: WorkerID) -> WorkerFacts? {
    world.workers[id].map {
      var facts = WorkerFacts(policy: $0.configuration.policy)
      facts.isDeclared = $0.isDeclared
      facts.isAdopted = $0.external != nil
      return facts
    }
  }
  func daemonFacts() -> DaemonFacts {
    DaemonFacts(
      version: "1", freezer: CodedText("sigstop", "SIGSTOP"), stateDirectory: "/state",
      imageCosts: WriteLedger.Costs())
  }

  func savings(of id: WorkerID) -> RecentSavingsReport {
    let none = SavingsReport(byteHours: 0, asleepSeconds: 0, aliveSeconds: 0, resumes: 0)
    return RecentSavingsReport(today: none, week: none)
  }
  func policyFacts() -> PolicyFacts { PolicyFacts(origins: Origins()) }
  func counters(of id: WorkerID, at now: Instant) -> WorkerCounters { WorkerCounters() }
  func measurements(at now: Instant) -> DaemonMeasurements { DaemonMeasurements(upSeconds: 0) }
  func isWrapped(_ worker: String?) -> Bool { false }
  func leads(_ id: WorkerID) -> Bool { false }
  func wrappedReport(of name: String, at now: Instant) -> WorkerReport? { nil }
  func wrappedReports(at now: Instant) -> [WorkerReport] { [] }
  func scanProcesses(then: @escaping (ProcessScan?) -> Void) { later(nil, then) }
  func withRecentScan(then: @escaping (ProcessScan?) -> Void) { later(nil, then) }
  func loadSnapshot(of name: String, then: @escaping (SnapshotStore.Snapshot?) -> Void) {
    later(nil, then)
  }
  var jetsamIDs: [String] { ["1"] }
  func loadJetsam(_ id: String, then: @escaping (JetsamRecord?) -> Void) { later(nil, then) }
  func examineItself(
    then: @escaping (Result<DaemonExamination, ExaminationFailure>) -> Void
  ) { later(.failure(.overdue), then) }
  func saveJournal(then: @escaping (JournalPlace) -> Void) {
    later(JournalPlace(directory: nil, reports: "/reports", run: nil, at: 0), then)
  }

  // MARK: verbs

  var now: Instant { world.clock.now }
  var isEnding: Bool { world.phase.isEnding }
  var isLeaving: Bool { world.phase.isLeaving }
  func end() { world.ending.end() }
  func leave() { world.ending.leave() }
  func isAlive(_ id: WorkerID) -> Bool { world.requests.isAlive(id) }
  func request(
    _ verb: Request.Verb, _ id: WorkerID, asked: Instant?, lasting: Duration?,
    then answer: @escaping (Answer) -> Void
  ) { world.requests.request(verb, id, asked: asked, lasting: lasting, then: answer) }
  func start(_ id: WorkerID, _ verb: Request.Verb, then answer: @escaping (Answer) -> Void) {
    world.supervision.start(id, verb, then: answer)
  }
  func foreignRefusal(_ verb: Request.Verb, _ id: WorkerID) -> String? {
    world.externals.foreignRefusal(verb, id)
  }
  func personAsks(_ verb: Request.Verb, _ id: WorkerID) {
    world.supervision.personAsks(verb, id)
  }
  func prioritize(_ id: WorkerID) {}
  func sendDiskReading(then done: @escaping () -> Void) {
    world.count("disk read by request")
    later((), done)
  }

  // MARK: also what isn't asked for in this world

  private func refuse(
    _ request: ControlRequest, _ respond: @escaping (ControlResponse) -> Void
  ) { respond(ControlResponse(id: request.id, result: .refused, text: "not here")) }

  func launch(
    _ configuration: WorkerConfiguration, environment: [String: String],
    then answer: @escaping (Answer) -> Void
  ) { world.supervision.launch(configuration, environment: environment, then: answer) }
  func remove(_ id: WorkerID, then done: @escaping (_ failure: String?) -> Void) {
    done(nil)
  }
  func adopt(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    world.externals.adopt(request, then: respond)
  }
  func previewAdoption(then: @escaping (AdoptionPreviewReport?) -> Void) {
    later(AdoptionPreviewReport(rules: world.rules.rules.count, findings: []), then)
  }
  func release(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    world.externals.release(request, then: respond)
  }
  func reloadWorker(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    refuse(request, respond)
  }
  func reload(allowEmpty: Bool, then report: @escaping (ReloadOutcome) -> Void) {
    world.reloads.reloader.reload(allowEmpty: allowEmpty, then: report)
  }
  func previewReload(allowEmpty: Bool, then report: @escaping (ReloadOutcome) -> Void) {
    world.reloads.reloader.preview(allowEmpty: allowEmpty, then: report)
  }
  func register(_ wrapper: WrapperReport?, from client: ClientID) -> String? { nil }
  func hasLeft(_ client: ClientID) {}
  func relay(
    _ request: ControlRequest, patience: Duration,
    then respond: @escaping (ControlResponse) -> Void
  ) { refuse(request, respond) }
}
