import Control
import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile

@testable import Daemon
@testable import Simulation

/// Simulated processes of another supervisor, for the real `ExternalAdoption` and `RuleAdoption`.
final class ShellExternals: StateFileWriter {
  private unowned let world: ShellWorld
  /// The runs that were given back to their supervisor.
  private var released: [ShellRun] = []

  init(_ world: ShellWorld) { self.world = world }

  /// The rules in the file when it is read: none, one or both of two rules.
  static func nextRules(
    _ old: [AdoptionRule], _ policy: LifecyclePolicy, using random: inout SplitMix64
  ) -> [AdoptionRule] {
    if random.chance(50) { return old }
    return ["ra", "rb"].filter { _ in random.chance(70) }.map { name in
      var rule = AdoptionRule(name: name, matches: [], policy: policy)
      rule.mode = random.pick([.manage, .manage, .shadow])
      rule.mayTerminate = random.chance(50)
      rule.limit = random.pick([1, 50])
      rule.importance = random.pick([0, 50])
      return rule
    }
  }

  /// A released run that isn't as its supervisor left it, or a worker whose rule was removed; nil:
  /// neither.
  var omission: String? {
    if let run = released.first(where: { $0.body != .running && $0.body != .dead }) {
      return "\(run.id) was released, and doesn't run (\(run.body.rawValue))"
    }
    let names = Set(world.rules.rules.map(\.name))
    return world.workers.values.first { $0.external?.rule.map { !names.contains($0) } ?? false }
      .map { "\($0.id) belongs to a rule that was removed" }
  }

  /// Makes the run of a process that is adopted.
  func makeRun(_ name: String) throws(SystemCallError) -> ShellRun {
    if world.chance(5) { throw SystemCallError("pidfd_open", on: name, code: ESRCH) }
    world.count("adopted external")
    if name.hasPrefix("r"), name.contains("-") { world.count("adopted by rule") }
    return ShellRun(WorkerID(name), world, isExternal: true)
  }

  /// - Parameter rule: the rule by which it was adopted.
  func didRelease(_ run: ShellRun, _ rule: String?) {
    released.append(run)
    guard run.body == .running else { return }
    if run.isImageNeeded { run.complain("is released with memory in an image") }
    world.count("released external")
    if let rule, !world.rules.rules.contains(where: { $0.name == rule }) {
      world.count("released by rule")
    }
  }

  /// Writes the file of released processes.
  func replace(_ path: String, with text: String, then: @escaping (_ failure: String?) -> Void) {
    if text.split(separator: "\n").count > 1 { world.count("released from its rule") }
    world.clock.after(.milliseconds(10)) { then(nil) }
  }
}

// Processes of other supervisors, which appear now and then. They are examined as if on another
// thread.
extension ShellEnd {
  func examine(
    _ wanted: AdoptionSpecification, as name: String, in library: PolicyLibrary,
    within limit: Duration,
    then: @escaping (JobOutcome<Result<ExternalProcess, AdoptionRefusal>>) -> Void
  ) {
    world.after(.milliseconds(200), rarely: limit) { [self] in
      let outcome = world.pick([0, 0, 0, 0, 0, 0, 0, 1, 2])
      switch outcome {
      case 0: then(.done(.success(world.processes.external)))
      case 1: then(.done(.failure(.refused("it is stopped"))))
      default: then(.overdue)
      }
    }
  }

  func scan(_ scan: RuleScan, then: @escaping (RuleScan.Outcome?) -> Void) {
    later(rarely: .seconds(20)) { [self] in
      if world.chance(3) { return then(nil) }
      var outcome = RuleScan.Outcome()
      // When the simulation ends its faults, no new process appears.
      let indices = scan.matching.rules.indices.filter { _ in world.chance(15) }
      outcome.matches = indices.map { index in
        RuleScan.Match(
          process: world.processes.external.root.identity, rule: index,
          matched: world.pick([.ready, .ready, .refused("it is stopped"), .contained(7)]),
          command: ["r"])
      }
      then(outcome)
    }
  }

  func chooseRules(
    for workers: [RuledWorker], by matching: RuleMatching,
    then: @escaping ([WorkerID: AdoptionRule]?) -> Void
  ) {
    later(rarely: .seconds(20)) { [self] in
      if world.chance(10) { return then(nil) }
      var choices: [WorkerID: AdoptionRule] = [:]
      for worker in workers where !world.chance(10) {
        choices[worker.id] = matching.rules.first { worker.id.name.hasPrefix($0.name) }
      }
      then(choices)
    }
  }

  private func later(rarely longest: Duration, _ action: @escaping () -> Void) {
    let limit = world.chance(2) ? longest : .milliseconds(100)
    world.clock.after(world.random.duration(upTo: limit), do: action)
  }

  func forget(_ name: String) {}
}
