import Control
import Lifecycle
import Linux
import Policy
import Synchronization
import Testing

@testable import Daemon
@testable import PolicyFile

/// The real `ControlService` over the components of `AdapterWorld`, and its answers.
final class ControlWorld {
  let world: AdapterWorld
  let service: ControlService
  let memory = FakeMemory()
  let sent = Sent()
  let client = ClientID(number: 1)
  /// The server of the service, if a test opens one.
  var server: ControlServer? { didSet { sent.server = server } }
  /// The configuration that a reload reads.
  let file = ConfigurationOnDisk()
  /// The outcome of `doctor`.
  let examined: Examined

  final class Examined: Sendable {
    let outcome = Mutex<SelfExamination.Outcome>(.failure(.overdue))
  }

  /// What was sent to clients that follow events. Without a server, they read it at once.
  final class Sent {
    var responses: [ControlResponse] = []
    weak var server: ControlServer?
  }

  /// The answers to one request.
  final class Heard { var responses: [ControlResponse] = [] }

  /// - Parameter program: the program of a wrapper.
  init(
    journal: JournalConfiguration = JournalConfiguration(), program: (any CallersProgram)? = nil
  ) throws {
    let world = try AdapterWorld(journal: journal)
    self.world = world
    let reloader = world.makeReloader(file.reader(world.services.jobs))
    let outcome = Examined()
    examined = outcome
    world.driver.connect([world.notes, world.chronicle])
    let reporter = DaemonReporter(
      driver: world.driver, version: "1.2.3", state: world.state,
      configuration: world.configuration, chronicle: world.chronicle, pressure: world.pressure,
      imageDisk: world.senses.imageDisk, cgroups: nil, hooks: nil)
    let facts = world.makeFacts(program)
    let status = StatusReporter(
      facts: facts, daemon: reporter, wrappers: world.wrappers, scanner: world.senses.scanner,
      snapshots: world.snapshots)
    let startConfirmation = StartConfirmation(
      requests: world.requests, restarts: world.restarts, scanner: world.senses.scanner)
    service = ControlService(
      following: EventFollowing(world.chronicle) { [sent] client in
        sent.server.map { $0.unreadBytes(of: client) } ?? 0
      } send: { [sent] response, client in
        sent.responses.append(response)
        sent.server?.send(response, to: client)
      }, status: status,
      explanations: ExplanationVerbs(status: status, resumeOverride: nil),
      history: HistoryVerbs(
        clock: world.timers, driver: world.driver, chronicle: world.chronicle,
        jetsam: world.jetsam, loopReturn: world.services.loopReturn),
      workers: WorkerVerbs(
        externals: world.externals, startConfirmation: startConfirmation, memory: memory),
      undeclared: UndeclaredWorkers(
        declared: world.declared, requests: world.requests, startConfirmation: startConfirmation,
        supervision: world.supervision, jobs: world.services.jobs, logs: world.state.logs),
      externals: world.externals, reloads: world.reloads,
      daemon: DaemonVerbs(
        ending: world.ending, reloader: reloader,
        examination: SelfExamination(world.services.jobs) { outcome.outcome.withLock { $0 } },
        reporter: reporter, jobs: world.services.jobs))
  }

  func ask(_ request: ControlRequest) -> Heard {
    let heard = Heard()
    service.handle(request, from: client) { heard.responses.append($0) }
    return heard
  }

  func ask(_ verb: ControlRequest.Verb, _ worker: String? = nil) -> Heard {
    ask(ControlRequest(id: 7, verb: verb, worker: worker))
  }

  /// Waits for the answer, and checks that there is only one, and that it is to this request.
  func only(_ heard: Heard) throws -> ControlResponse {
    try world.turn { !heard.responses.isEmpty }
    #expect(heard.responses.count == 1)
    let response = try #require(heard.responses.first)
    #expect(response.id == 7)
    return response
  }

  /// Lets each operation that the engine begins end at once, until the request is answered.
  func onlyInTheEnd(_ heard: Heard, of id: WorkerID) throws -> ControlResponse {
    try world.turn {
      switch world.driver.state.state(of: id) {
      case .launching: world.driver.send(.launchFailed(id, "no such program"))
      case .suspending: world.driver.send(.suspendFailed(id, "it is busy"))
      case .hibernating: world.driver.send(.hibernateFailed(id, "no room", permanent: false))
      case .resuming: world.driver.send(.resumed(id, .zero))
      case .terminating: world.driver.send(.exited(id, .exited(0)))
      default:
        world.driver.send(.shedAnswered(id))
        world.driver.send(.trimFailed(id, "it is busy", permanent: false))
        world.driver.send(.fillFailed(id, "it is busy"))
      }
      world.timers.advance(by: .milliseconds(500))
      world.driver.passDeadlines()
      return !heard.responses.isEmpty
    }
    return try only(heard)
  }

  /// Registers a wrapper with a worker of this name.
  func wrap(_ name: String) { world.wrap(name, from: ClientID(number: 9)) }
}

extension AdapterWorld {
  func makeReloader(_ read: @escaping ConfigurationReloader.Reader) -> ConfigurationReloader {
    ConfigurationReloader(
      configuration: configuration, declared: declared, supervision: supervision,
      hibernation: services.hibernation, pressure: pressure, schedules: schedules,
      encryption: senses.encryption, rules: rules, hooks: nil, read: read)
  }

  /// - Parameter program: the program of a wrapper.
  func makeFacts(_ program: (any CallersProgram)? = nil) -> WorkerFactsReader {
    WorkerFactsReader(
      clock: timers, workers: workers, state: state, planner: planner, chronicle: chronicle,
      imageDisk: senses.imageDisk, restarts: restarts, starter: starter, schedules: schedules,
      program: program)
  }
}

/// The configuration that a reload reads; nil: it has errors.
final class ConfigurationOnDisk: Sendable {
  let content = Mutex<DaemonConfiguration?>(
    DaemonConfiguration(policy: LifecyclePolicy(name: "test")))

  func reader(_ jobs: LoopJobs) -> ConfigurationReloader.Reader {
    ConfigurationReloader.reader(jobs) { [self] in
      ParseResult(value: content.withLock { $0 }, diagnostics: [])
    }
  }
}
