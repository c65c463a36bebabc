import Lifecycle
import Policy
import PolicyFile

/// A configuration that is read again: all of it is taken, or nothing.
extension Daemon {
  /// What changed, or why nothing did.
  func reload() -> (isDone: Bool, text: String) {
    let result = settings.reload()
    guard let new = result.value else {
      return (false, "the configuration has errors, nothing is changed:\n\(result.rendered)")
    }
    for warning in result.warnings { log(.warning, warning.rendered) }
    var changes: [String] = []
    if new.policy != engine.policy {
      engine.setPolicy(new.policy)
      watchPressure()
      changes.append("policy \(new.policy.name)")
    }
    settings.configuration = new
    changes += removeUndeclared(Set(new.workers.map { WorkerID($0.name) }))
    for worker in new.workers { if let change = take(worker) { changes.append(change) } }
    // `run` workers live by the daemon's policy.
    for runtime in workers.values.sorted(by: { $0.id < $1.id }) where !runtime.isDeclared {
      guard runtime.configuration.policy != new.policy else { continue }
      runtime.configuration.policy = new.policy
      feed(.profileChanged(runtime.id, runtime.profile))
    }
    // What a policy doesn't want any more doesn't wait for the next hibernation.
    for runtime in workers.values where !runtime.keepsBase {
      hibernation.dropIdleBase(of: runtime.id.name)
    }
    feed(.deadline)
    return (true, changes.isEmpty ? "nothing has changed" : changes.joined(separator: "; "))
  }

  private func removeUndeclared(_ declared: Set<WorkerID>) -> [String] {
    let gone = workers.values.filter { $0.isDeclared && !declared.contains($0.id) }
    return gone.map(\.id).sorted().map { id in
      if engine.state(of: id)?.isAlive == true { request(.stop, id) { _ in } }
      feed(.removed(id))
      if engine.state(of: id) == nil { workers[id] = nil }
      return "\(id) removed"
    }
  }

  /// A worker of the new configuration. Its policy, importance and shed channel apply at once, the
  /// rest when it is launched next.
  private func take(_ configuration: WorkerConfiguration) -> String? {
    let id = WorkerID(configuration.name)
    let environment = settings.environment.merging(configuration.environment) { $1 }
    guard let runtime = workers[id] else {
      introduce(configuration)
      if configuration.autostart { startAutomatically(id) }
      return "\(id) added"
    }
    guard runtime.configuration != configuration || !runtime.isDeclared else { return nil }
    let changed = Self.differences(runtime.configuration, configuration)
    runtime.configuration = configuration
    runtime.environment = environment
    runtime.isDeclared = true
    feed(.profileChanged(id, runtime.profile))
    let isAlive = engine.state(of: id)?.isAlive == true
    let atLaunch = changed.filter { $0.atLaunch }.map(\.name)
    let later =
      isAlive && !atLaunch.isEmpty
      ? " (\(atLaunch.joined(separator: ", ")) when it is started next)" : ""
    return "\(id): \(changed.map(\.name).joined(separator: ", "))\(later)"
  }

  private static func differences(
    _ old: WorkerConfiguration, _ new: WorkerConfiguration
  ) -> [(name: String, atLaunch: Bool)] {
    var result: [(String, Bool)] = []
    if old.policy != new.policy { result.append(("policy", false)) }
    if old.importance != new.importance { result.append(("importance", false)) }
    if old.shed != new.shed { result.append(("shed", false)) }
    if old.stopSignal != new.stopSignal { result.append(("stop_signal", false)) }
    if old.autostart != new.autostart { result.append(("autostart", false)) }
    if old.command != new.command { result.append(("command", true)) }
    if old.directory != new.directory { result.append(("directory", true)) }
    if old.environment != new.environment { result.append(("environment", true)) }
    if old.readiness != new.readiness { result.append(("readiness", true)) }
    return result
  }
}
