import Lifecycle
import Policy
import PolicyFile

@testable import Daemon
@testable import Simulation

/// The host of the real `ConfigurationReloader`, and the real `DeclaredChanges`, over a configuration that is read
/// again while operations are under way.
final class ShellReloads: ConfigurationHost {
  private unowned let world: ShellWorld
  let configuration: ConfigurationInForce
  var current: DaemonConfiguration { configuration.current }
  private lazy var changes = DeclaredChanges(
    driver: world.driver, workers: world.workers, declared: world.declared,
    requests: world.requests, starter: world.supervision.starter,
    supervision: world.supervision.real, listening: world.supervision.listening)
  private(set) lazy var reloader = ConfigurationReloader(
    driver: world.driver, host: self, log: world.processes.log
  ) { [unowned self] in look(then: $0) }

  init(_ world: ShellWorld, _ current: DaemonConfiguration) {
    self.world = world
    configuration = ConfigurationInForce(current)
  }

  private func look(then: @escaping (ParseResult<DaemonConfiguration>?) -> Void) {
    var choices = SplitMix64(seed: world.random.next())
    world.after(.milliseconds(50), rarely: .seconds(9)) { [self] in
      if world.chance(5) { return then(nil) }
      var new = current
      if choices.chance(8) { new.policy = .ofShell(using: &choices) }
      let others = world.workers.values.filter { !$0.isDeclared }.map(\.id.name).sorted()
      new.workers = ShellConfigurations.next(
        current.workers, others: others, new.policy, using: &choices)
      new.adoption = ShellRules.next(current.adoption, new.policy, using: &choices)
      then(ParseResult(value: world.chance(5) ? nil : new, diagnostics: []))
    }
  }

  /// What isn't so though the configuration was read a while ago; nil: nothing.
  var omission: String? {
    let ids = Set(current.workers.map { WorkerID($0.name) })
    for id in ids.sorted() where world.driver.state.state(of: id) == nil {
      return "\(id) is in the configuration, and the engine doesn't know it"
    }
    for unit in world.workers.values where unit.isDeclared && !ids.contains(unit.id) {
      return "\(unit.id) is still declared"
    }
    let known = Set(world.driver.state.snapshots().map(\.worker))
    if known != Set(world.workers.keys) {
      return "the engine knows \(known), and the registry \(Set(world.workers.keys))"
    }
    return nil
  }

  // MARK: the reloader's host

  var isEnding: Bool { world.phase.isEnding }
  var isLeaving: Bool { world.phase.isLeaving }

  func known(_ id: WorkerID) -> KnownWorker? { changes.known(id) }
  var rules: [AdoptionRule] { current.adoption }
  var hooks: Hooks { current.hooks }
  var knownWorkers: [WorkerID] { Array(world.workers.keys) }
  func policyHasChanged(_ policy: LifecyclePolicy) {}
  func apply(_ configuration: DaemonConfiguration) {
    world.count("reloaded")
    self.configuration.apply(configuration)
  }
  func remove(_ id: WorkerID) {
    let state = world.driver.state.state(of: id)
    world.count(state?.isAlive == true ? "removed alive" : "removed")
    if state?.isSettled == false { world.count("removed while under way") }
    world.runs.noteRemovals { changes.remove(id) }
  }
  func undeclare(_ id: WorkerID) {
    world.count("undeclared while it returns")
    changes.undeclare(id)
  }
  func whenAdopted(_ id: WorkerID, _ body: @escaping () -> Void) -> Bool {
    world.returning.whenBack(id, body)
  }
  func introduce(_ configuration: WorkerConfiguration) { world.declared.addDeclared(configuration) }
  func apply(_ configuration: WorkerConfiguration, of id: WorkerID) {
    world.count("changed")
    let unit = world.workers[id]
    if unit?.isDeclared == false, unit?.external == nil, configuration.autostart,
      world.driver.state.state(of: id)?.isAlive == true
    {
      world.count("started again")
    }
    world.supervision.rulesWillChange(of: id)
    let traffic = unit?.traffic
    changes.apply(configuration, of: id)
    // As the next look at its activity does.
    unit?.traffic = traffic
  }
  func setPolicy(_ policy: LifecyclePolicy, of id: WorkerID) {
    changes.setPolicy(policy, of: id)
  }
  func hasFailed(_ id: WorkerID) -> Bool { world.supervision.restarts.hasFailed(id) }
  func startAutomatically(added: [WorkerConfiguration], corrected: [WorkerConfiguration]) {
    for worker in corrected { world.supervision.real.personAsks(.start, WorkerID(worker.name)) }
    world.declared.startAutomatically(added + corrected)
    world.supervision.starter.advance()
  }
  func configurationHasChanged() {
    world.schedules.follow()
    world.rules.follow(current.adoption)
  }
}
