import Lifecycle
import Linux
import Policy
import PolicyFile
import TestSupport

@testable import Daemon

/// Listening sockets under the real engine. The sockets are real; workers run and time passes when
/// a test says so. The files of sockets are created on another thread.
final class ListeningWorld {
  let loop: EventLoop
  let watches = FakeWatches()
  let restarts: RestartWorld
  let sockets: ListeningSockets
  let threads: JobPool

  var timers: FakeTimers { restarts.timers }
  var scratch: Scratch { restarts.scratch }
  var driver: EngineDriver { restarts.driver }
  var workers: WorkerRegistry { restarts.workers }

  init(threads count: Int = 256) throws {
    loop = try EventLoop()
    restarts = try RestartWorld()
    threads = JobPool(name: "test", maxOrdinary: count, endsAfter: .seconds(5))
    let jobs = try LoopJobs(loop, threads)
    sockets = ListeningSockets(
      watches: watches, timers: restarts.timers, jobs: jobs, files: SocketFiles(jobs, threads),
      declared: DeclaredWorkers(
        driver: restarts.driver, workers: restarts.workers, returning: restarts.returning,
        phase: restarts.phase, environment: [:], restarts: restarts.supervisor,
        starter: restarts.starter,
        learnedMemory: LearnedMemoryKeeper(path: nil, restarts.timers) { _, _, _, _ in },
        wrappers: RegisteredWrappers(
          driver: restarts.driver, workers: restarts.workers, clock: restarts.timers,
          host: NoWrappers()),
        log: restarts.log))
  }

  /// The workers that connections have started, in order.
  var started: [String] {
    restarts.requests.filter { $0.occasion == .connection }.map(\.worker.name)
  }
  var logged: [String] { restarts.lines }

  @discardableResult
  func add(_ name: String, _ listen: ListenSocket...) -> WorkerUnit {
    var configuration = WorkerConfiguration(name: name, command: ["serve"])
    configuration.listen = listen
    let worker = WorkerUnit(configuration: configuration, environment: [:], isDeclared: true)
    workers[worker.id] = worker
    restarts.supervisor.add(worker.id, exits: [])
    driver.send(.added(worker.id, WorkerProfile(policy: configuration.policy)))
    return worker
  }

  /// Ends a run in which the worker has accepted no connection.
  func end(_ worker: WorkerUnit) {
    driver.send(.launched(worker.id))
    driver.send(.exited(worker.id, .exited(0)))
  }

  func open(then: @escaping () -> Void = {}) {
    sockets.openListeners(of: workers.values.map(\.configuration), then: then)
  }

  /// Turns the real loop until the condition holds.
  func turn(until isDone: () throws -> Bool) throws { try loop.turn(until: isDone) }

  /// Applies the current configuration, and waits until that has had its effect.
  func relisten(_ worker: WorkerUnit, until isDone: () throws -> Bool) throws {
    sockets.relisten(worker)
    try turn(until: isDone)
  }

  /// Connects a client.
  func connect(_ port: UInt16) throws -> LoopbackClient {
    let client = try LoopbackClient(port)
    // The kernel may report the connection a moment later.
    _ = try eventually { try watches.serveOnce() }
    return client
  }
}
