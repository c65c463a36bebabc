import Lifecycle
import PolicyFile
import Supervision

@testable import Daemon
@testable import Simulation

/// The real `ConfigurationReloader` over a configuration that is read again while operations are in
/// progress. It records what a reload changes.
final class ShellReloads {
  private unowned let world: ShellWorld
  let configuration: ConfigurationInForce
  var current: DaemonConfiguration { configuration.current }
  private(set) lazy var reloader = ConfigurationReloader(
    configuration: configuration, declared: world.declared, supervision: world.supervision.real,
    hibernation: world.processes.hibernation, pressure: world.pressure,
    schedules: world.schedules.monitor,
    encryption: EncryptionTrial(log: { _, _ in }) { $0(.done(nil)) }, rules: world.rules,
    hooks: nil, read: { [unowned self] in read(then: $0) })

  /// A worker before a reload.
  private struct WorkerBeforeReload {
    let unit: WorkerUnit
    let run: WorkerRun
    let configuration: WorkerConfiguration
    let isDeclared: Bool
    let state: WorkerState?
    let traffic: TrafficMonitor?
  }

  init(_ world: ShellWorld, _ current: DaemonConfiguration) {
    self.world = world
    configuration = ConfigurationInForce(current)
  }

  private func read(then: @escaping (ParseResult<DaemonConfiguration>?) -> Void) {
    var choices = SplitMix64(seed: world.random.next())
    world.after(.milliseconds(50), rarely: .seconds(9)) { [self] in
      if world.chance(5) { return then(nil) }
      var new = current
      if choices.chance(8) { new.policy = .ofShell(using: &choices) }
      let others = world.workers.values.filter { !$0.isDeclared }.map(\.id.name).sorted()
      new.workers = ShellConfigurations.next(
        current.workers, others: others, new.policy, using: &choices)
      new.adoption = ShellExternals.nextRules(current.adoption, new.policy, using: &choices)
      let read = ParseResult(value: world.chance(5) ? nil : new, diagnostics: [])
      record(new) { then(read) }
    }
  }

  /// - Parameter reload: performs the reload, its preview, or a refusal of either.
  private func record(_ new: DaemonConfiguration, _ reload: () -> Void) {
    let declared = Dictionary(new.workers.map { (WorkerID($0.name), $0) }) { first, _ in first }
    let before = world.workers.values.sorted { $0.id < $1.id }.map { unit in
      WorkerBeforeReload(
        unit: unit, run: unit.run, configuration: unit.configuration, isDeclared: unit.isDeclared,
        state: world.driver.state.state(of: unit.id), traffic: unit.traffic)
    }
    for old in before {
      if let worker = declared[old.unit.id], worker != old.configuration || !old.isDeclared {
        world.supervision.rulesWillChange(of: old.unit.id)
      }
    }
    let returning = Set(before.map(\.unit.id).filter(world.returning.isAdopting))
    reload()
    for old in before {
      let id = old.unit.id
      if old.isDeclared, !old.unit.isDeclared {
        if returning.contains(id) {
          world.count("undeclared while it returns")
        } else {
          world.count(old.state?.isAlive == true ? "removed alive" : "removed")
          if old.state?.isSettled == false { world.count("removed while under way") }
        }
      }
      guard let worker = declared[id], old.unit.configuration == worker, old.unit.isDeclared,
        worker != old.configuration || !old.isDeclared
      else { continue }
      world.count("changed")
      if !old.isDeclared, old.unit.external == nil, worker.autostart, old.state?.isAlive == true {
        world.count("started again")
      }
      // The next sample of the worker's activity would restore this.
      if old.unit.run === old.run { old.unit.traffic = old.traffic }
    }
  }

  /// What isn't as the configuration says although it was read a while ago; nil: nothing.
  var omission: String? {
    let ids = Set(current.workers.map { WorkerID($0.name) })
    for id in ids.sorted() where world.driver.state.state(of: id) == nil {
      return "\(id) is in the configuration, and the engine doesn't know it"
    }
    for unit in world.workers.values where unit.isDeclared && !ids.contains(unit.id) {
      return "\(unit.id) is still declared"
    }
    let inEngine = Set(world.driver.state.snapshots().map(\.worker))
    if inEngine != Set(world.workers.keys) {
      return "the engine knows \(inEngine), and the registry \(Set(world.workers.keys))"
    }
    return nil
  }
}
