import Glibc
import Policy
import PolicyFile

@testable import Simulation

/// Random configurations of the workers w0 to w4.
enum ShellConfigurations {
  static let names = (0..<5).map { "w\($0)" }

  static func first(
    _ policy: LifecyclePolicy, using random: inout SplitMix64
  ) -> [WorkerConfiguration] {
    let names = names.prefix(1 + Int(random.next() % 3))
    return names.indices.map {
      worker(names[$0], after: Array(names.prefix($0)), policy, using: &random)
    }
  }

  /// The configuration file when it is read again: some workers are removed, some changed, some
  /// new.
  static func next(
    _ old: [WorkerConfiguration], others: [String], _ policy: LifecyclePolicy,
    using random: inout SplitMix64
  ) -> [WorkerConfiguration] {
    if random.chance(15) { return old }
    if random.chance(5) { return [] }
    var new: [WorkerConfiguration] = []
    // The configuration may declare a name that `run` or `adopt` already uses.
    let candidates = names + (random.chance(10) ? others.prefix(1) : [])
    for name in candidates {
      let before = new.map(\.name)
      if let existing = old.first(where: { $0.name == name }) {
        if random.chance(25) { continue }
        var kept =
          random.chance(40) ? worker(name, after: before, policy, using: &random) : existing
        kept.dependsOn.removeAll { !before.contains($0.worker) }
        new.append(kept)
      } else if random.chance(25) {
        new.append(worker(name, after: before, policy, using: &random))
      }
    }
    return new
  }

  /// - Parameter before: the names of workers that this one may depend on.
  private static func worker(
    _ name: String, after before: [String], _ policy: LifecyclePolicy,
    using random: inout SplitMix64
  ) -> WorkerConfiguration {
    var workerPolicy = random.chance(90) ? policy : .ofShell(using: &random)
    workerPolicy.memory = policy.memory
    var worker = WorkerConfiguration(
      name: name, command: [name], directory: "/", importance: random.pick([0, 0, 50, 100]),
      autostart: random.chance(30), shed: random.pick([.signal(SIGUSR1), .notify, nil]),
      readiness: random.chance(50) ? .notify : nil, policy: workerPolicy)
    worker.restart = RestartRules(
      random.pick(RestartRules.Condition.allCases),
      giveUp: random.pick([nil, RestartRules.GiveUp(restarts: 2, window: .seconds(60))]))
    if let other = before.last, random.chance(40) {
      worker.dependsOn = [Dependency(other, random.pick(Dependency.Condition.allCases))]
    }
    if random.chance(50) { worker.liveness = probe(using: &random) }
    // The line is a constant, so it can be parsed.
    if random.chance(15) {
      worker.wakeAt = [try? CalendarSchedule(parsing: line)].compactMap(\.self)
    }
    if let other = before.last, random.chance(30) { worker.wakeWith = [other] }
    return worker
  }

  static let line = "*/5 * * * *"

  private static func probe(using random: inout SplitMix64) -> Probe {
    Probe(
      .exec(["ask"]), initialDelay: random.pick([.zero, .seconds(3)]),
      period: random.pick([.seconds(5), .seconds(10), .seconds(20)]),
      timeout: random.pick([.milliseconds(500), .seconds(3)]),
      failureThreshold: random.pick([1, 3]))
  }
}

extension LifecyclePolicy {
  /// A random policy with rare heartbeats. The simulation of the engine alone has heartbeats every
  /// few seconds, which would be most of the events here.
  static func ofShell(using random: inout SplitMix64) -> LifecyclePolicy {
    var policy = LifecyclePolicy.random(using: &random)
    if let every = policy.background.heartbeat?.every {
      policy.background.heartbeat?.every = every * 15
    }
    policy.background.wakeForTimers = random.chance(70) ? .seconds(60) : nil
    return policy
  }
}
