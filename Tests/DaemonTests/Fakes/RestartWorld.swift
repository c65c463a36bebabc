import Linux
import Policy
import TestSupport

@testable import Daemon
@testable import Lifecycle

/// Workers whose processes start and end as a test says, under the real engine. Its transitions are
/// passed to the real `RestartSupervisor` and `DependencyStarter`, as the daemon passes them.
final class RestartWorld {
  let base: AdapterWorld
  var timers: FakeLoop { base.timers }
  var workers: WorkerRegistry { base.workers }
  var driver: EngineDriver { base.driver }
  var supervisor: RestartSupervisor { base.restarts }
  /// The cause of the next end. The engine ends workers for memory by its own rules.
  private var cause: Cause?

  init(files: JobPool = .forTest) throws {
    var policy = LifecyclePolicy(name: "test")
    (policy.pressure.warning, policy.pressure.urgent, policy.pressure.critical) = (nil, nil, nil)
    policy.pressure.clearAfter = .zero
    base = try AdapterWorld(policy: policy, files: files)
    driver.connect([base.notes]) { [weak self] in self?.execute($0) }
  }

  private func execute(_ directive: Directive) {
    guard case .transition(var transition) = directive else { return }
    if transition.to == .terminated, let cause {
      transition.cause = cause
      self.cause = nil
    }
    supervisor.record(transition)
    base.starter.advance()
  }

  static let failure = Cause.exited(.exited(4))
  static let rules = RestartRules(.always, giveUp: nil)

  // MARK: actions of a test

  func add(
    _ name: String = "web", _ rules: RestartRules = rules, importance: Int = 0,
    dependsOn: [Dependency] = []
  ) {
    let id = WorkerID(name)
    let worker = workers[id] ?? .forTest(name)
    worker.configuration.restart = rules
    worker.configuration.importance = importance
    worker.configuration.dependsOn = dependsOn
    workers[id] = worker
    if driver.state.state(of: id) == nil { driver.send(.added(id, worker.profile)) }
    supervisor.add(id, exits: [])
  }

  /// Changes the restart rules of the worker's configuration.
  func setRules(_ name: String = "web", _ condition: RestartRules.Condition) {
    workers[WorkerID(name)]?.configuration.restart.condition = condition
  }

  /// Lets the worker run. It is requested to start if it is terminated.
  func launch(_ name: String = "web", for time: Duration = .zero) {
    let id = WorkerID(name)
    if state(of: name) == .terminated { driver.request(.start, id) { _ in } }
    driver.send(.launched(id))
    timers.advance(by: time)
  }

  func end(_ name: String = "web", _ cause: Cause = failure) {
    let id = WorkerID(name)
    self.cause = cause
    switch cause {
    case .failed(let reason) where state(of: name) == .launching:
      driver.send(.launchFailed(id, reason))
    case .exited(let status): driver.send(.exited(id, status))
    default: driver.send(.exited(id, .signaled(15)))
    }
  }

  func run(_ name: String = "web", for time: Duration = .zero, _ cause: Cause = failure) {
    launch(name, for: time)
    end(name, cause)
  }

  /// Reports a transition to the supervisor only. The engine's state doesn't change.
  func record(_ name: String = "web", to state: WorkerState, _ cause: Cause) {
    supervisor.record(
      Transition(
        worker: WorkerID(name), from: self.state(of: name) ?? .terminated, to: state,
        cause: cause, at: timers.now))
  }

  func setPressure(_ level: PressureLevel) {
    driver.send(.pressureSet(level, for: .seconds(100_000)))
  }

  func setMemory(free: ByteCount, budget: ByteCount = .gigabytes(2)) {
    driver.send(.memory(MemoryReading(total: budget, available: free)))
  }

  /// The daemon begins to end.
  func close() { base.phase.isEnding = true }

  // MARK: results

  func state(of name: String) -> WorkerState? { driver.state.state(of: WorkerID(name)) }

  var requests: [Request] {
    base.notes.all.compactMap { if case .request(let request) = $0 { request } else { nil } }
  }

  /// The workers that were restarted.
  var restarted: [String] { requests.filter { $0.occasion == .restart }.map(\.worker.name) }

  /// The saved list of workers that the operator has stopped.
  var stopped: String? { base.files.texts["/state/stopped"] }

  /// The lines that were logged so far, without their times.
  var lines: [String] { base.logFile.lines }

  /// The time until the planned restart; nil: none is planned.
  func delay(of name: String = "web") -> Duration? {
    guard case .backingOff(let due, _) = supervisor.histories[WorkerID(name)]?.plan else {
      return nil
    }
    return due - timers.now
  }
}

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
