import Lifecycle
import Policy
import PolicyFile

/// The workers of the configuration: adds them, and starts those with autostart. Belongs to the loop's thread.
final class DeclaredWorkers {
  private let driver: EngineDriver
  private let workers: WorkerRegistry
  private let returning: ReturningWorkers
  private let phase: DaemonPhase
  /// The daemon's own.
  private let environment: [String: String]
  private let restarts: RestartSupervisor
  private let starter: DependencyStarter
  private let learnedMemory: LearnedMemoryKeeper
  private let wrappers: RegisteredWrappers
  private let stoppedByPerson: StoppedByPerson
  private let log: DaemonLog

  init(
    driver: EngineDriver, workers: WorkerRegistry, returning: ReturningWorkers,
    phase: DaemonPhase, environment: [String: String], restarts: RestartSupervisor,
    starter: DependencyStarter, learnedMemory: LearnedMemoryKeeper, wrappers: RegisteredWrappers,
    stoppedByPerson: StoppedByPerson, log: DaemonLog
  ) {
    self.driver = driver
    self.workers = workers
    self.returning = returning
    self.phase = phase
    self.environment = environment
    self.restarts = restarts
    self.starter = starter
    self.learnedMemory = learnedMemory
    self.wrappers = wrappers
    self.stoppedByPerson = stoppedByPerson
    self.log = log
  }

  /// The whole environment: the configuration's variables override the daemon's own.
  func environment(of configuration: WorkerConfiguration) -> [String: String] {
    environment.merging(configuration.environment) { $1 }
  }

  func introduceWorkers(_ configurations: [WorkerConfiguration]) {
    for configuration in configurations { addDeclared(configuration) }
  }

  func addDeclared(_ configuration: WorkerConfiguration) {
    let worker = WorkerUnit(
      configuration: configuration, environment: environment(of: configuration),
      isDeclared: true)
    restarts.add(worker.id, exits: learnedMemory.rememberedExits(of: worker.id))
    wrappers.giveUp(worker.id)
    workers[worker.id] = worker
    driver.send(.added(worker.id, worker.profile))
  }

  /// At the daemon's start: starts workers with autostart that aren't running already.
  func startWorkers(_ configurations: [WorkerConfiguration]) {
    // A foreground worker of an earlier daemon stays there: it is adopted before others start.
    let verb: Request.Verb = hasFront ? .restart : .start
    let front = workers.values.first { $0.returnsToFront && returning.isAdopting($0.id) }?.id
    for configuration in Self.inStartingOrder(configurations) where configuration.autostart {
      let id = WorkerID(configuration.name)
      if configuration.restart.condition == .unlessStopped, stoppedByPerson.contains(id) {
        log(.notice, "\(configuration.name): stays stopped (restart: unless-stopped)")
        continue
      }
      let waits =
        front.map { front in
          front != id
            && returning.whenBack(front) { [unowned self] in
              if !phase.isClosing { startAutomatically(id, verb: verb) }
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
    starter.start(id, verb, occasion: occasion) { [log] answer in
      if answer.code != .done { log(.error, answer.text) }
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
