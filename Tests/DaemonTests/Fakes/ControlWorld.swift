import Control
import Glibc
import JSONLines
import Lifecycle
import Linux
import Policy
import Synchronization
import TestSupport
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
    let outcome = Mutex<ExaminationProgram.Outcome>(.failure(.overdue))
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
      }, status: status, resumeOverride: nil, jetsam: world.jetsam,
      loopReturn: world.services.loopReturn,
      workers: WorkerVerbs(
        externals: world.externals, startConfirmation: startConfirmation, memory: memory),
      externals: world.externals, reloads: world.reloads,
      ending: world.ending, reloader: reloader,
      examination: CoalescedProbe(world.services.jobs, about: "doctor", within: .seconds(40)) {
        { outcome.outcome.withLock { $0 } }
      }, jobs: world.services.jobs)
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

/// Requests to the real `ControlService` about a wrapped worker. Its wrapper answers when a test
/// says so.
final class RelayedRequests {
  let control: ControlWorld
  /// The ids of all requests so far.
  private(set) var ids: [UInt64] = []
  /// Whether each request is answered at once.
  var answersAtOnce = false

  init() throws {
    control = try ControlWorld()
    control.wrap("web")
    control.world.wrapped.whenAsked = { [unowned self] request in
      ids.append(request.id)
      if answersAtOnce { answer(request.id) }
    }
  }

  func answer(_ id: UInt64, _ text: String = "well") {
    control.world.wrapped.answer(to: id, text)
  }
}

/// The client's end of a control socket. It never waits, because the loop runs on the same thread.
final class ControlTestClient {
  let socket: Descriptor
  private var framer = LineFramer(maximumLength: 4 << 20)
  private(set) var answers: [ControlResponse] = []
  private(set) var hasEnded = false

  init(_ path: String) throws { socket = try UnixSocket.connected(to: path, .stream) }

  /// Sends as many bytes as the socket accepts, and returns the others.
  func offer(_ bytes: ArraySlice<UInt8>) throws -> ArraySlice<UInt8> {
    let count = bytes.withUnsafeBytes {
      Glibc.send(socket.raw, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
    }
    if count < 0 {
      guard errno == EAGAIN else { throw TestFailure("send: errno \(errno)") }
      return bytes
    }
    return bytes.dropFirst(count)
  }

  func send(_ text: String) throws {
    guard try offer(Array(text.utf8)[...]).isEmpty else { throw TestFailure("the socket is full") }
  }

  func ask(_ ids: ClosedRange<UInt64>, _ verb: ControlRequest.Verb = .wake) throws {
    let lines = try ids.map { id in
      String(
        decoding: try WireCodec.line(for: ControlRequest(id: id, verb: verb, worker: "web")),
        as: UTF8.self)
    }
    try send(lines.joined())
  }

  func ask(_ id: UInt64, _ verb: ControlRequest.Verb = .wake) throws { try ask(id...id, verb) }

  /// Reads what has arrived.
  func read() throws {
    let arrived = socket.arrived()
    hasEnded = arrived.isAtEnd
    framer.append(arrived.bytes)
    while let line = try framer.next() {
      answers.append(try WireCodec.decode(ControlResponse.self, from: line))
    }
  }
}
