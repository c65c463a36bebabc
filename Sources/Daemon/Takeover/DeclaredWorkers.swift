import Lifecycle
import Policy
import PolicyFile

/// Adds the workers of the configuration, and starts those with autostart. It belongs to the event
/// loop's thread.
struct DeclaredWorkers {
  let driver: EngineDriver
  let workers: WorkerRegistry
  let returning: ReturningWorkers
  let phase: DaemonPhase
  /// The daemon's environment.
  let environment: [String: String]
  let restarts: RestartSupervisor
  let starter: DependencyStarter
  let learnedMemory: LearnedMemoryKeeper
  let wrappers: RegisteredWrappers
  let log: DaemonLog

  /// The environment of a worker. The configuration's variables override those of the daemon's
  /// environment.
  func environment(of configuration: WorkerConfiguration) -> [String: String] {
    environment.merging(configuration.environment) { $1 }
  }

  @discardableResult
  func addDeclared(_ configuration: WorkerConfiguration) -> WorkerUnit {
    let worker = WorkerUnit(
      configuration: configuration, environment: environment(of: configuration),
      isDeclared: true)
    add(worker)
    return worker
  }

  /// Adds a worker of the configuration, or one of `run`, in place of an earlier one of its name.
  func add(_ worker: WorkerUnit) {
    restarts.add(worker.id, exits: learnedMemory.rememberedExits(of: worker.id))
    wrappers.giveUp(worker.id)
    workers[worker.id] = worker
    driver.send(.added(worker.id, worker.profile))
  }

  /// Starts the workers with autostart that don't run yet, when the daemon starts.
  func startWorkers(_ configurations: [WorkerConfiguration]) {
    // A foreground worker of an earlier daemon stays in the foreground, so it is adopted before
    // others start.
    let isForegroundTaken = workers.values.contains {
      $0.returnsToFront || driver.state.state(of: $0.id) == .foreground
    }
    let verb: Request.Verb = isForegroundTaken ? .restart : .start
    let front = workers.values.first { $0.returnsToFront && returning.isAdopting($0.id) }?.id
    for configuration in Self.inStartingOrder(configurations) where configuration.autostart {
      let id = WorkerID(configuration.name)
      if configuration.restart.condition == .unlessStopped, restarts.isStopped(id) {
        log(.notice, "\(configuration.name): stays stopped (restart: unless-stopped)")
        continue
      }
      let startLater = { if !phase.isClosing { startAutomatically(id, verb: verb) } }
      if let front, front != id, returning.whenAdopted(front, startLater) { continue }
      startAutomatically(id, verb: verb)
    }
  }

  /// Starts the workers with autostart that a reload has added.
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

  /// The workers in the order of the configuration, but each after its dependencies. They are
  /// launched at the same time. Of the workers that enter the foreground, the engine keeps the one
  /// that was requested last.
  private static func inStartingOrder(_ workers: [WorkerConfiguration]) -> [WorkerConfiguration] {
    let byName = Dictionary(workers.map { ($0.name, $0) }) { first, _ in first }
    let needs = workers.map { (name: $0.name, needs: $0.dependsOn.map(\.worker)) }
    return DependencyOrder.sequence(needs).compactMap { byName[$0] }
  }
}
