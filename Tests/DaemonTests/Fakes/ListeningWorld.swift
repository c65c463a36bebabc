import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision
import TestSupport

@testable import Daemon

/// The daemon as listening sockets see it: real sockets, workers without processes, time that passes when a test
/// says so. Files of sockets are made on another thread.
final class ListeningWorld {
  let loop: EventLoop
  let timers = FakeTimers()
  let watches = FakeWatches()
  let scratch: Scratch
  let driver: EngineDriver
  let workers = WorkerRegistry()
  let sockets: ListeningSockets
  private let host: Host
  private let executor = NoExecutor()

  private final class Host: ListeningHost {
    weak var world: ListeningWorld?
    var isClosing: Bool { world?.isClosing ?? true }
    func hasProcess(_ id: WorkerID) -> Bool { world?.hasProcess(id) ?? false }
    func isLaunching(_ id: WorkerID) -> Bool { world?.isLaunching(id) ?? false }
    func processes(of id: WorkerID) -> ProcessTree? { nil }
    func start(_ id: WorkerID) { world?.start(id) }
    func log(_ priority: DaemonLog.Priority, _ text: String) { world?.log(priority, text) }
  }

  private final class NoExecutor: DirectiveExecutor {
    func execute(_ directive: Directive) {}
    func engineIsQuiet() {}
  }

  var isClosing = false
  var running: Set<String> = []
  var launching: Set<String> = []
  private(set) var started: [String] = []
  private(set) var logged: [String] = []

  let threads: JobPool

  init(threads count: Int = 256) throws {
    loop = try EventLoop()
    scratch = try Scratch()
    driver = EngineDriver(
      Engine(policy: LifecyclePolicy(name: "test")), clock: timers,
      replies: RequestReplies(FakeSavedState(), timers: timers))
    driver.connect(executor, [])
    threads = JobPool(name: "test", most: count, endsAfter: .seconds(5))
    let jobs = try LoopJobs(loop, threads)
    host = Host()
    sockets = ListeningSockets(
      watches: watches, timers: timers, jobs: jobs, files: SocketFiles(jobs, threads),
      driver: driver, workers: workers, host: host)
    host.world = self
  }

  func hasProcess(_ id: WorkerID) -> Bool { running.contains(id.name) }
  func isLaunching(_ id: WorkerID) -> Bool { launching.contains(id.name) }
  func start(_ id: WorkerID) { started.append(id.name) }
  func log(_ priority: DaemonLog.Priority, _ text: String) { logged.append(text) }

  @discardableResult
  func add(_ name: String, _ listen: ListenSocket...) -> WorkerUnit {
    var configuration = WorkerConfiguration(name: name, command: ["serve"])
    configuration.listen = listen
    let runtime = WorkerUnit(configuration: configuration, environment: [:], isDeclared: true)
    workers[runtime.id] = runtime
    driver.send(.added(runtime.id, WorkerProfile(policy: configuration.policy)))
    return runtime
  }

  func open(then: @escaping () -> Void = {}) {
    sockets.openListeners(of: workers.values.map(\.configuration), then: then)
  }

  /// Turns the real loop until that holds.
  func turn(until isDone: () throws -> Bool) throws {
    let deadline = EventLoop.now + .seconds(60)
    while try !isDone() {
      if EventLoop.now >= deadline { throw TestFailure("it didn't happen within 60 s") }
      try loop.turn(until: EventLoop.now + .milliseconds(5))
    }
  }

  /// Reads what the configuration is now, and waits until that has had its effect.
  func relisten(_ runtime: WorkerUnit, until isDone: () throws -> Bool) throws {
    sockets.relisten(runtime)
    try turn(until: isDone)
  }

  /// A client has connected.
  func connect(_ port: UInt16) throws -> LoopbackClient {
    let client = try LoopbackClient(port)
    // The kernel may show it a moment later.
    _ = try eventually { try watches.serveOnce() }
    return client
  }
}
