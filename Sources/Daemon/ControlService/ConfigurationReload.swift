import Lifecycle
import Policy
import PolicyFile

/// What a reload has changed, or why it changed nothing.
typealias ReloadOutcome = (isDone: Bool, text: String)

/// A configuration that is read again: all of it is taken, or nothing.
extension Daemon {
  private static let readingPatience = Duration.seconds(10)
  static let configurationIsSilent: ReloadOutcome = (
    false,
    "the configuration can't be read within \(readingPatience.spoken), nothing is changed: its file "
      + "system doesn't answer"
  )

  /// Its files, and the policies that it names, may be in a file system that doesn't answer.
  func makeConfigurationLook() -> SharedLook<ParseResult<DaemonConfiguration>> {
    SharedLook(jobs, about: "configuration", within: Self.readingPatience) { [unowned self] in
      settings.reload
    }
  }

  /// - Parameter allowEmpty: it may stop and remove every declared worker.
  func reload(allowEmpty: Bool = false, then report: @escaping (ReloadOutcome) -> Void) {
    configurationLook.take { [unowned self] result in
      guard let result else { return report(Self.configurationIsSilent) }
      if isEnding || isLeaving { return report((false, "the daemon is ending")) }
      report(take(result, allowEmpty))
    }
  }

  private func take(
    _ result: ParseResult<DaemonConfiguration>, _ allowEmpty: Bool
  ) -> ReloadOutcome {
    guard let new = result.value else {
      return (false, "the configuration has errors, nothing is changed:\n\(result.rendered)")
    }
    if !allowEmpty, let refusal = refusalOfEmpty(new) { return (false, refusal) }
    for warning in result.warnings { log(.warning, warning.rendered) }
    var changes: [String] = []
    let before = engine.policy
    if let change = PolicyFile.summary(from: before, to: new.policy) {
      driver.setPolicy(new.policy)
      chronicle.note(new.policy, at: EventLoop.now)
      watchPressure()
      changes.append(change)
    }
    settings.configuration = new
    changes += removeUndeclared(Set(new.workers.map { WorkerID($0.name) }))
    // All of them are known before the first is started: they may need each other.
    let added = new.workers.filter { workers[WorkerID($0.name)] == nil }
    let names = Set(added.map(\.name))
    for worker in added {
      introduce(worker)
      if let runtime = workers[WorkerID(worker.name)] { relisten(runtime) }
    }
    for worker in new.workers {
      if names.contains(worker.name) {
        changes.append("\(worker.name) added")
      } else if let change = take(worker, (before, new.policy)) {
        changes.append(change)
      }
    }
    for worker in inStartingOrder(added) where worker.autostart {
      startAutomatically(WorkerID(worker.name))
    }
    dependencyStarter.advance()
    // `run` workers live by the daemon's policy.
    for runtime in workers.values.sorted(by: { $0.id < $1.id }) where !runtime.isDeclared {
      guard runtime.configuration.policy != new.policy else { continue }
      runtime.configuration.policy = new.policy
      driver.send(.profileChanged(runtime.id, runtime.profile))
    }
    // What a policy doesn't want any more doesn't wait for the next hibernation.
    for runtime in workers.values where !runtime.keepsBase {
      hibernation.dropIdleBase(of: runtime.id.name)
    }
    schedules.follow()
    tryEncryption()
    driver.send(.deadline)
    return (true, changes.isEmpty ? "nothing has changed" : changes.joined(separator: "; "))
  }

  /// A file that was emptied by accident looks like one that wants all workers gone.
  func refusalOfEmpty(_ new: DaemonConfiguration) -> String? {
    let declared = workers.values.filter(\.isDeclared).count
    guard new.workers.isEmpty, declared > 0 else { return nil }
    let all = declared == 1 ? "the only worker" : "all \(declared) workers"
    return
      "the configuration declares no workers, nothing is changed: it would stop and remove \(all); "
      + "`dormouse reload --allow-empty` does that"
  }

  private func removeUndeclared(_ declared: Set<WorkerID>) -> [String] {
    let gone = workers.values.filter { $0.isDeclared && !declared.contains($0.id) }
    return gone.map(\.id).sorted().map { id in
      forgetPlans(of: id)
      if engine.state(of: id)?.isAlive == true { request(.stop, id) { _ in } }
      if let runtime = workers[id] { closeListeners(of: runtime) }
      driver.send(.removed(id))
      if engine.state(of: id) == nil { removeWorker(id) }
      return "\(id) removed"
    }
  }

  /// A worker of the new configuration. Its policy, importance and shed channel apply at once, the
  /// rest when it is launched next.
  ///
  /// - Parameter machine: the policy for all, before and after.
  private func take(
    _ configuration: WorkerConfiguration, _ machine: (old: LifecyclePolicy, new: LifecyclePolicy)
  ) -> String? {
    let id = WorkerID(configuration.name)
    let environment = settings.environment.merging(configuration.environment) { $1 }
    guard let runtime = workers[id] else { return nil }
    guard runtime.configuration != configuration || !runtime.isDeclared else { return nil }
    let text = changeText(of: configuration, from: runtime, machine)
    runtime.configuration = configuration
    runtime.environment = environment
    runtime.isDeclared = true
    restartRulesChanged(runtime)
    driver.send(.profileChanged(id, runtime.profile))
    if engine.state(of: id)?.isAlive != true { relisten(runtime) }
    return text
  }

  /// What a worker's new configuration changes of it, beside what has been told for all; nil: nothing.
  func changeText(
    of configuration: WorkerConfiguration, from runtime: WorkerRuntime,
    _ machine: (old: LifecyclePolicy, new: LifecyclePolicy)
  ) -> String? {
    let changed = configuration.changes(from: runtime.configuration, machine: machine)
    guard !changed.isEmpty else { return nil }
    let isAlive = engine.state(of: runtime.id)?.isAlive == true
    let atLaunch = changed.filter(\.atLaunch).map(\.key)
    let later =
      isAlive && !atLaunch.isEmpty
      ? " (\(atLaunch.joined(separator: ", ")) when it is started next)" : ""
    return "\(runtime.id): \(changed.map(\.text).joined(separator: ", "))\(later)"
  }
}
