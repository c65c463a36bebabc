import Lifecycle
import Policy
import PolicyFile

/// The functions of the daemon that `DeclaredWorkers` uses. Tests provide their own.
protocol DeclaredHost: AnyObject {
  /// The daemon ends, or leaves its workers: no worker is started any more.
  var isClosing: Bool { get }
  /// The whole environment: the configuration's variables override the daemon's own.
  func environment(of configuration: WorkerConfiguration) -> [String: String]
  /// Called before the registry and the engine have it: its earlier runs are remembered, and the daemon stops
  /// following a wrapper of the same name.
  func willAdd(_ id: WorkerID)
  /// The operator has stopped it, and it is to stay stopped when a daemon starts.
  func wasStoppedByPerson(_ id: WorkerID) -> Bool
  /// Starts it after the workers that it depends on.
  func start(
    _ id: WorkerID, _ verb: Request.Verb, occasion: Request.Occasion,
    then answer: @escaping (Answer) -> Void)
  func log(_ priority: DaemonLog.Priority, _ text: String)
}

/// The workers of the configuration: adds them, and starts those with autostart. Belongs to the loop's thread.
final class DeclaredWorkers {
  private let driver: EngineDriver
  private let workers: WorkerRegistry
  private let returning: ReturningWorkers
  private let host: any DeclaredHost

  init(
    driver: EngineDriver, workers: WorkerRegistry, returning: ReturningWorkers,
    host: any DeclaredHost
  ) {
    self.driver = driver
    self.workers = workers
    self.returning = returning
    self.host = host
  }

  func introduceWorkers(_ configurations: [WorkerConfiguration]) {
    for configuration in configurations { addDeclared(configuration) }
  }

  func addDeclared(_ configuration: WorkerConfiguration) {
    let runtime = WorkerUnit(
      configuration: configuration, environment: host.environment(of: configuration),
      isDeclared: true)
    host.willAdd(runtime.id)
    workers[runtime.id] = runtime
    driver.send(.added(runtime.id, runtime.profile))
  }

  /// At the daemon's start: starts workers with autostart that aren't running already.
  func startWorkers(_ configurations: [WorkerConfiguration]) {
    // A foreground worker of an earlier daemon stays there: it is adopted before others start.
    let verb: Request.Verb = hasFront ? .restart : .start
    let front = workers.values.first { $0.returnsToFront && returning.isAdopting($0.id) }?.id
    for configuration in Self.inStartingOrder(configurations) where configuration.autostart {
      let id = WorkerID(configuration.name)
      if configuration.restart.condition == .unlessStopped, host.wasStoppedByPerson(id) {
        host.log(
          .notice, "\(configuration.name): stays stopped (restart: unless-stopped)")
        continue
      }
      let waits =
        front.map { front in
          front != id
            && returning.whenBack(front) { [unowned self] in
              if !host.isClosing { startAutomatically(id, verb: verb) }
            }
        } ?? false
      if !waits { startAutomatically(id, verb: verb) }
    }
  }

  /// Added by a reload.
  func startAutomatically(_ added: [WorkerConfiguration]) {
    for worker in Self.inStartingOrder(added) where worker.autostart {
      startAutomatically(WorkerID(worker.name))
    }
  }

  func startAutomatically(
    _ id: WorkerID, verb: Request.Verb = .start, occasion: Request.Occasion = .autostart
  ) {
    guard driver.state.state(of: id) == .terminated else { return }
    host.start(id, verb, occasion: occasion) { [host] answer in
      if answer.code != .done { host.log(.error, answer.text) }
    }
  }

  /// In the order of the configuration, but each after its dependencies. They are launched at the same time; of
  /// the workers that enter the foreground, the engine keeps the one that was requested last.
  private static func inStartingOrder(_ workers: [WorkerConfiguration]) -> [WorkerConfiguration] {
    let byName = Dictionary(workers.map { ($0.name, $0) }) { first, _ in first }
    let needs = workers.map { (name: $0.name, needs: $0.dependsOn.map(\.worker)) }
    return DependencyOrder.sequence(needs).compactMap { byName[$0] }
  }

  /// A worker is in the foreground, or returns there.
  private var hasFront: Bool {
    workers.values.contains {
      $0.returnsToFront || driver.state.state(of: $0.id) == .foreground
    }
  }
}

/// The daemon's functions that it uses.
final class DeclaredOfDaemon: DeclaredHost {
  struct Parts {
    let phase: DaemonPhase
    /// The daemon's own.
    let environment: [String: String]
    let restarts: RestartSupervisor
    let learnedMemory: LearnedMemoryKeeper
    let wrappers: RegisteredWrappers
    let stoppedByPerson: StoppedByPerson
    let starter: DependencyStarter
    let log: DaemonLog
  }

  private let parts: Parts

  init(_ parts: Parts) { self.parts = parts }

  var isClosing: Bool { parts.phase.isClosing }

  func environment(of configuration: WorkerConfiguration) -> [String: String] {
    parts.environment.merging(configuration.environment) { $1 }
  }

  func willAdd(_ id: WorkerID) {
    parts.restarts.add(id, exits: parts.learnedMemory.rememberedExits(of: id))
    parts.wrappers.giveUp(id)
  }

  func wasStoppedByPerson(_ id: WorkerID) -> Bool { parts.stoppedByPerson.contains(id) }

  func start(
    _ id: WorkerID, _ verb: Request.Verb, occasion: Request.Occasion,
    then answer: @escaping (Answer) -> Void
  ) {
    parts.starter.start(id, verb, occasion: occasion, then: answer)
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) { parts.log(priority, text) }
}
