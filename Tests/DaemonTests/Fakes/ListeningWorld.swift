import Linux
import Policy
import TestSupport

@testable import Daemon

/// Listening sockets under the real engine. The sockets are real; workers run and time passes when
/// a test says so. The files of sockets are created on another thread.
final class ListeningWorld {
  let restarts: RestartWorld
  let threads: JobPool
  private var clients: [LoopbackClient] = []

  private var base: AdapterWorld { restarts.base }
  var timers: FakeLoop { base.timers }
  var watches: FakeLoop { base.watches }
  var scratch: Scratch { base.scratch }
  var driver: EngineDriver { base.driver }
  var workers: WorkerRegistry { base.workers }
  var sockets: ListeningSockets { base.listening }

  init(threads count: Int = 256) throws {
    threads = JobPool(name: "test", maxOrdinary: count, endsAfter: .seconds(5))
    restarts = try RestartWorld(files: threads)
  }

  /// The workers that connections have started, in order.
  var started: [String] {
    restarts.requests.filter { $0.occasion == .connection }.map(\.worker.name)
  }
  var logged: [String] { restarts.lines }

  @discardableResult
  func add(_ name: String, _ listen: ListenSocket...) -> WorkerUnit {
    let worker = WorkerUnit.forTest(name) { $0.listen = listen }
    workers[worker.id] = worker
    restarts.supervisor.add(worker.id, exits: [])
    driver.send(.added(worker.id, worker.profile))
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
  func turn(until isDone: () throws -> Bool) throws { try base.services.loop.turn(until: isDone) }

  /// Applies the current configuration, and waits until that has had its effect.
  func relisten(_ worker: WorkerUnit, until isDone: () throws -> Bool) throws {
    sockets.relisten(worker)
    try turn(until: isDone)
  }

  /// Connects a client, which stays connected.
  @discardableResult
  func connect(_ port: UInt16) throws -> LoopbackClient {
    let client = try LoopbackClient(port)
    clients.append(client)
    // The kernel may report the connection a moment later.
    _ = try eventually { try watches.serveOnce() }
    return client
  }
}
