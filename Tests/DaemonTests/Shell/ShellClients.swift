import Control
import Lifecycle

@testable import Daemon
@testable import Simulation

/// Clients of the real `ControlService`, which send requests, disconnect, and connect again. This
/// counts the answers to each request.
final class ShellClients {
  private unowned let world: ShellWorld
  private lazy var service = makeService()
  private var clients = (0..<3).map { ClientID(number: $0) }
  private var lastClient: UInt64 = 2
  private var answers: [(verb: ControlRequest.Verb, count: Int, isClosed: Bool)] = []

  init(_ world: ShellWorld) { self.world = world }

  /// The verbs that a client of a worker may use.
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

  /// Requests that the configuration is read again.
  func askReload(allowEmpty: Bool) {
    var request = ControlRequest(id: UInt64(answers.count), verb: .reload)
    request.allowEmpty = allowEmpty
    send(request, from: clients[0])
  }

  /// Requests to run a worker that no configuration declares.
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

  /// Whether requests had no answer when the daemon ended.
  private(set) var wereCutOff = false

  /// Closes all requests without an answer, as `ControlServer` does.
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
      if request.verb == .reload, response.result == .done { world.count("reloaded") }
      if !answers[number].isClosed { answers[number].count += 1 }
    }
    if [.status, .events, .jetsam].contains(request.verb) { world.awaitDisk() }
  }

  /// Disconnects the client. A new client replaces it.
  private func leave(_ client: ClientID) {
    guard let index = clients.firstIndex(of: client) else { return }
    world.count("client left")
    service.didDisconnect(client)
    lastClient += 1
    clients[index] = ClientID(number: lastClient)
  }

  /// Requests that weren't answered exactly once.
  var omissions: [String] {
    answers.enumerated().filter { $1.count != 1 }.map { number, request in
      "request \(number) (\(request.verb)) was answered \(request.count) times"
    }
  }

  // MARK: events

  func unreadBytes(of client: ClientID) -> Int? {
    clients.contains(client) ? world.pick([0, EventFollowing.maxUnread + 1]) : nil
  }

  func send(_ response: ControlResponse, to client: ClientID) {
    world.count("event sent")
    if !clients.contains(client) { world.complain("an event is sent to a client that has left") }
  }

  // MARK: the service

  /// Makes a `ControlService` as the daemon does.
  private func makeService() -> ControlService {
    let (clock, driver, workers) = (world.clock, world.driver, world.workers)
    let (processes, supervision) = (world.processes, world.supervision)
    let reporter = DaemonReporter(
      driver: driver, version: "1", state: processes.state,
      configuration: world.reloads.configuration, chronicle: world.chronicle,
      pressure: world.pressure, imageDisk: world.imageDisk, cgroups: nil, hooks: nil)
    let facts = WorkerFactsReader(
      clock: clock, workers: workers, state: processes.state, planner: world.planner,
      chronicle: world.chronicle, imageDisk: world.imageDisk, restarts: supervision.restarts,
      starter: supervision.starter, schedules: world.schedules.monitor, program: nil)
    let status = StatusReporter(
      facts: facts, daemon: reporter, wrappers: world.wrappers, scanner: makeScanner(),
      snapshots: processes.snapshots)
    return ControlService(
      following: EventFollowing(world.chronicle) { [unowned self] in
        unreadBytes(of: $0)
      } send: { [unowned self] in
        send($0, to: $1)
      }, status: status, resumeOverride: nil, jetsam: processes.jetsam,
      loopReturn: processes.services.loopReturn,
      workers: WorkerVerbs(
        externals: world.externals, startConfirmation: supervision.startConfirmation,
        memory: world.memory),
      externals: world.externals, reloads: supervision.reloads,
      ending: world.ending, reloader: world.reloads.reloader,
      examination: CoalescedProbe(processes.jobs, about: "doctor", within: .seconds(40)) {
        { .failure(.overdue) }
      }, jobs: processes.jobs)
  }

  /// Makes a scanner whose scans are slow, and may fail.
  private func makeScanner() -> ProcessScanner {
    ProcessScanner(world.clock, launchedAt: world.supervision.restarts.launchedAt) {
      [unowned world] then in
      world.after(.milliseconds(50), rarely: .seconds(10)) {
        then(world.chance(10) ? nil : world.processes.scan(afterTicks: 3))
        world.awaitDisk()
      }
    }
  }
}
