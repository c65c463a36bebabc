import Lifecycle
import Policy
import PolicyFile

/// What a reload has changed, or why it changed nothing.
typealias ReloadOutcome = (isDone: Bool, text: String)

/// What a reload reads and changes of the daemon. Tests provide their own.
protocol ConfigurationHost: AnyObject {
  var isEnding: Bool { get }
  var isLeaving: Bool { get }
  /// nil: there is no such worker.
  func known(_ id: WorkerID) -> KnownWorker?
  var knownWorkers: [WorkerID] { get }
  /// Those of the configuration in force.
  var rules: [AdoptionRule] { get }
  var hooks: Hooks { get }

  /// The engine has the policy.
  func policyHasChanged(_ policy: LifecyclePolicy)
  /// The daemon's configuration from now on; each worker's comes after it.
  func apply(_ configuration: DaemonConfiguration)
  /// Stops it, where it runs, and forgets it.
  func remove(_ id: WorkerID)
  /// The configuration no longer declares it; it stays until `remove`.
  func undeclare(_ id: WorkerID)
  /// Calls `body` when the worker, which an earlier daemon has started, has been adopted, or has ended. False: it
  /// isn't being adopted, and `body` is not called.
  func whenAdopted(_ id: WorkerID, _ body: @escaping () -> Void) -> Bool
  /// Adds it, and opens its sockets.
  func introduce(_ configuration: WorkerConfiguration)
  /// Its configuration from now on. It is declared now, if it wasn't.
  func apply(_ configuration: WorkerConfiguration, of id: WorkerID)
  func setPolicy(_ policy: LifecyclePolicy, of id: WorkerID)
  /// It has ended in a failure, or wasn't started because another one has, and isn't waited for.
  func hasFailed(_ id: WorkerID) -> Bool
  /// Those of them that start by themselves, after those that they need. Earlier failures of corrected ones don't count.
  func startAutomatically(added: [WorkerConfiguration], corrected: [WorkerConfiguration])
  /// The new configuration is in force: all that depends on it is looked at again.
  func configurationHasChanged()
}

/// A worker before a reload.
struct KnownWorker {
  var configuration: WorkerConfiguration
  var isDeclared: Bool
  /// Adopted by a rule, which has its policy.
  var isRuled = false
}

/// A configuration that is read again: all of it is taken, or nothing. Belongs to the loop's thread.
final class ConfigurationReloader {
  /// Reads the configuration, and calls back; nil: its file system doesn't answer.
  typealias Look = (@escaping (ParseResult<DaemonConfiguration>?) -> Void) -> Void
  private typealias Policies = (old: LifecyclePolicy, new: LifecyclePolicy)

  static let patience = Duration.seconds(10)
  static let isSilent: ReloadOutcome = (
    false,
    "nothing changed: reading the configuration took longer than \(patience.spoken); check its "
      + "file system"
  )

  private let driver: EngineDriver
  private unowned let host: any ConfigurationHost
  private let log: DaemonLog
  private let look: Look

  /// The host isn't kept alive.
  init(
    driver: EngineDriver, host: any ConfigurationHost, log: DaemonLog, look: @escaping Look
  ) {
    self.driver = driver
    self.host = host
    self.log = log
    self.look = look
  }

  /// - Parameter allowEmpty: it may stop and remove every declared worker.
  func reload(allowEmpty: Bool, then report: @escaping (ReloadOutcome) -> Void) {
    look { [unowned self] result in
      guard let result else { return report(Self.isSilent) }
      if host.isEnding || host.isLeaving { return report((false, "the daemon is ending")) }
      report(apply(result, allowEmpty))
    }
  }

  /// What `reload` would change now, or why it would change nothing; changes nothing.
  func preview(allowEmpty: Bool, then report: @escaping (ReloadOutcome) -> Void) {
    look { [unowned self] result in
      report(result.map { preview($0, allowEmpty) } ?? Self.isSilent)
    }
  }

  private func apply(
    _ result: ParseResult<DaemonConfiguration>, _ allowEmpty: Bool
  ) -> ReloadOutcome {
    guard let new = result.value else {
      return (false, "nothing changed: the configuration has errors:\n\(result.rendered)")
    }
    if !allowEmpty, let refusal = refusalOfEmpty(new) { return (false, refusal) }
    for warning in result.warnings { log(.warning, warning.rendered) }
    let policies = (old: driver.state.policy, new: new.policy)
    var changes: [String] = []
    if let change = PolicyFile.summary(from: policies.old, to: policies.new) {
      driver.setPolicy(policies.new)
      host.policyHasChanged(policies.new)
      changes.append(change)
    }
    changes += AdoptionRule.changes(from: host.rules, to: new.adoption, machine: policies)
    if host.hooks != new.hooks { changes.append("the commands of `on` changed") }
    host.apply(new)
    changes += removeUndeclared(new) + applyWorkers(new, policies)
    // `run` workers live by the daemon's policy.
    for id in host.knownWorkers.sorted() {
      guard let known = host.known(id), !known.isDeclared, !known.isRuled else { continue }
      if known.configuration.policy != new.policy { host.setPolicy(new.policy, of: id) }
    }
    host.configurationHasChanged()
    driver.send(.deadline)
    return (
      true,
      changes.isEmpty
        ? "nothing changed: the configuration is the same" : changes.joined(separator: "; ")
    )
  }

  private func removeUndeclared(_ new: DaemonConfiguration) -> [String] {
    undeclared(in: new).map { id in
      // Until it is adopted, the engine knows no process of it that could be stopped.
      let waits = host.whenAdopted(id) { [unowned self] in
        // Another reload may have declared it again.
        if host.known(id)?.isDeclared == false { host.remove(id) }
      }
      guard waits else {
        host.remove(id)
        return "\(id) removed"
      }
      host.undeclare(id)
      return "\(id) removed (as soon as it has been adopted from the earlier daemon)"
    }
  }

  private func applyWorkers(_ new: DaemonConfiguration, _ policies: Policies) -> [String] {
    // All of them are known before the first is started: they may need each other.
    let added = new.workers.filter { host.known(WorkerID($0.name)) == nil }
    for worker in added { host.introduce(worker) }
    let corrected = corrected(in: new, policies)
    let names = Set(added.map(\.name))
    let changes = new.workers.compactMap { worker in
      names.contains(worker.name) ? "\(worker.name) added" : apply(worker, policies)
    }
    host.startAutomatically(added: added, corrected: corrected)
    return changes
  }

  /// Workers that have failed, and whose launch has changed, or that of one that they depend on.
  private func corrected(
    in new: DaemonConfiguration, _ policies: Policies
  ) -> [WorkerConfiguration] {
    let failed = new.workers.filter { $0.autostart && host.hasFailed(WorkerID($0.name)) }
    var corrected = Set(failed.filter { isCorrected($0, policies) }.map(\.name))
    var count = -1
    while count != corrected.count {
      count = corrected.count
      for worker in failed where worker.dependsOn.contains(where: { corrected.contains($0.worker) })
      {
        corrected.insert(worker.name)
      }
    }
    return failed.filter { corrected.contains($0.name) }
  }

  private func isCorrected(_ configuration: WorkerConfiguration, _ policies: Policies) -> Bool {
    guard let known = host.known(WorkerID(configuration.name)) else { return false }
    return configuration.changes(from: known.configuration, machine: policies)
      .contains(where: \.atLaunch)
  }

  /// A worker of the new configuration. Its policy, importance and shed channel apply at once, the
  /// rest when it is launched next.
  private func apply(_ configuration: WorkerConfiguration, _ policies: Policies) -> String? {
    let id = WorkerID(configuration.name)
    guard let known = host.known(id), isChanged(known, configuration) else { return nil }
    let text = changeText(of: configuration, from: known, policies)
    host.apply(configuration, of: id)
    return text
  }

  private func preview(
    _ result: ParseResult<DaemonConfiguration>, _ allowEmpty: Bool
  ) -> ReloadOutcome {
    guard let new = result.value else {
      return (false, "nothing would change: the configuration has errors:\n\(result.rendered)")
    }
    if !allowEmpty, let refusal = refusalOfEmpty(new) { return (false, refusal) }
    let policies = (old: driver.state.policy, new: new.policy)
    var changes: [String] = []
    if let change = PolicyFile.summary(from: policies.old, to: policies.new) {
      changes.append(change)
    }
    changes += undeclared(in: new).map { id in
      "\(id) would be \(isRunning(id) ? "stopped and removed" : "removed")"
    }
    changes += new.workers.compactMap { worker in
      guard let known = host.known(WorkerID(worker.name)) else {
        return "\(worker.name) would be added\(worker.autostart ? " and started" : "")"
      }
      return isChanged(known, worker) ? changeText(of: worker, from: known, policies) : nil
    }
    changes += AdoptionRule.changes(from: host.rules, to: new.adoption, machine: policies)
    if host.hooks != new.hooks { changes.append("the commands of `on` would change") }
    return (
      true,
      changes.isEmpty
        ? "nothing would change: the configuration is the same" : changes.joined(separator: "; ")
    )
  }

  /// A file that was emptied by accident looks like one that wants all workers removed.
  private func refusalOfEmpty(_ new: DaemonConfiguration) -> String? {
    let declared = host.knownWorkers.count { host.known($0)?.isDeclared == true }
    guard new.workers.isEmpty, declared > 0 else { return nil }
    let all = declared == 1 ? "the only worker" : "all \(declared) workers"
    return
      "nothing changed: the configuration declares no workers, which would stop and remove \(all); "
      + "use `dormouse reload --allow-empty` to do that"
  }

  /// Workers of the old configuration that the new one lacks.
  private func undeclared(in new: DaemonConfiguration) -> [WorkerID] {
    let declared = Set(new.workers.map { WorkerID($0.name) })
    return host.knownWorkers.filter {
      host.known($0)?.isDeclared == true && !declared.contains($0)
    }.sorted()
  }

  private func isChanged(_ known: KnownWorker, _ configuration: WorkerConfiguration) -> Bool {
    known.configuration != configuration || !known.isDeclared
  }

  /// What a change of its launch means for a worker that doesn't run.
  private func restartNote(_ configuration: WorkerConfiguration, _ changes: [WorkerChange])
    -> String
  {
    configuration.autostart && changes.contains(where: \.atLaunch)
      && host.hasFailed(WorkerID(configuration.name))
      ? " (it has failed, and is started again)" : ""
  }

  private func isRunning(_ id: WorkerID) -> Bool { driver.state.state(of: id)?.isAlive == true }

  /// What a worker's new configuration changes of it, beside what is said of all; nil: nothing.
  private func changeText(
    of configuration: WorkerConfiguration, from known: KnownWorker, _ policies: Policies
  ) -> String? {
    let changed = configuration.changes(from: known.configuration, machine: policies)
    guard !changed.isEmpty else {
      return known.isDeclared ? nil : "\(configuration.name): in the configuration again"
    }
    let atLaunch = changed.filter(\.atLaunch).map(\.key)
    let later =
      isRunning(WorkerID(configuration.name)) && !atLaunch.isEmpty
      ? " (\(atLaunch.joined(separator: ", ")) from its next start on)"
      : restartNote(configuration, changed)
    return "\(configuration.name): \(changed.map(\.text).joined(separator: ", "))\(later)"
  }
}
