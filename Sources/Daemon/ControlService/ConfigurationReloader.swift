import Hibernation
import Lifecycle
import Policy
import PolicyFile

/// The configuration in force. The workers' own configurations are in `WorkerUnit`; the list of
/// workers here is emptied when they have been introduced, and a reload brings a new list.
final class ConfigurationInForce {
  var current: DaemonConfiguration

  init(_ configuration: DaemonConfiguration) { current = configuration }
}

/// What a reload has changed, or why it changed nothing.
typealias ReloadOutcome = (isDone: Bool, text: String)

/// Reads the configuration again. It is applied as a whole or not at all. It belongs to the event
/// loop's thread.
struct ConfigurationReloader {
  /// Reads the configuration, and calls back, with nil if its file system doesn't answer.
  typealias Reader = (@escaping (ParseResult<DaemonConfiguration>?) -> Void) -> Void
  private typealias Policies = (old: LifecyclePolicy, new: LifecyclePolicy)

  static let timeout = Duration.seconds(10)
  static let isSilent: ReloadOutcome = (
    false,
    "nothing changed: reading the configuration took longer than \(timeout.text); check its "
      + "file system"
  )

  let configuration: ConfigurationInForce
  let declared: DeclaredWorkers
  let supervision: WorkerSupervision
  let hibernation: HibernationService
  let pressure: PressureMonitor
  let schedules: ScheduleMonitor
  let encryption: EncryptionTrial
  let rules: RuleAdoption
  /// nil if no commands are run here.
  let hooks: HookRunner?
  let read: Reader

  var driver: EngineDriver { declared.driver }
  var workers: WorkerRegistry { declared.workers }

  /// A function that reads the configuration on another thread: its files, and those of the
  /// policies that it names, may be in a file system that doesn't answer.
  static func reader(
    _ jobs: LoopJobs, _ read: @escaping @Sendable () -> ParseResult<DaemonConfiguration>
  ) -> Reader {
    let shared = CoalescedProbe<ParseResult<DaemonConfiguration>>(
      jobs, about: "configuration", within: timeout
    ) { read }
    return { shared.ask(then: $0) }
  }

  /// Reads the configuration again and applies it.
  ///
  /// - Parameters:
  ///   - allowEmpty: whether the new configuration may stop and remove all declared workers.
  ///   - isPreview: whether only to report what would change, or why nothing would.
  func reload(
    allowEmpty: Bool, isPreview: Bool = false, then report: @escaping (ReloadOutcome) -> Void
  ) {
    read { result in
      guard let result else { return report(Self.isSilent) }
      if !isPreview, declared.phase.isClosing { return report((false, "the daemon is ending")) }
      report(change(to: result, allowEmpty, isPreview: isPreview))
    }
  }

  /// Applies a configuration that was read. A preview only reports what would change.
  private func change(
    to result: ParseResult<DaemonConfiguration>, _ allowEmpty: Bool, isPreview: Bool
  ) -> ReloadOutcome {
    let changed = isPreview ? "would change" : "changed"
    guard let new = result.value else {
      return (false, "nothing \(changed): the configuration has errors:\n\(result.rendered)")
    }
    if !allowEmpty, let refusal = refusalOfEmpty(new) { return (false, refusal) }
    let policies = (old: driver.state.policy, new: new.policy)
    let policyChange = PolicyFile.summary(from: policies.old, to: policies.new)
    let old = configuration.current
    var others = AdoptionRule.changes(from: old.adoption, to: new.adoption, machine: policies)
    if old.hooks != new.hooks { others.append("the commands of `on` \(changed)") }
    others += Self.keysAtNextStart(from: old, to: new).map {
      "\($0) \(changed) (from the daemon's next start on)"
    }
    let removed = undeclared(in: new)
    let workerTexts = new.workers.compactMap { changeText(of: $0, policies, isPreview: isPreview) }
    var texts = policyChange.map { [$0] } ?? []
    if isPreview {
      texts += removed.map { "\($0) would be \(isRunning($0) ? "stopped and " : "")removed" }
      texts += workerTexts + others
    } else {
      for warning in result.warnings { declared.log(.warning, warning.rendered) }
      if policyChange != nil {
        driver.setPolicy(new.policy)
        pressure.follow(new.policy)
      }
      configuration.current = new
      texts += others + removed.map(removeUndeclared) + workerTexts
      applyWorkers(new, policies)
      applyPolicyToUndeclared(new.policy)
      follow(new)
      driver.send(.deadline)
    }
    return (
      true,
      texts.isEmpty
        ? "nothing \(changed): the configuration is the same" : texts.joined(separator: "; ")
    )
  }

  /// The keys with another value that applies when the daemon is started next.
  private static func keysAtNextStart(
    from old: DaemonConfiguration, to new: DaemonConfiguration
  ) -> [String] {
    let keys: [String?] = [
      old.stateDirectory == new.stateDirectory ? nil : "state_directory",
      old.socket == new.socket ? nil : "socket", old.journal == new.journal ? nil : "journal",
    ]
    return keys.compactMap(\.self)
  }

  /// Applies the machine's policy to workers of `run`. Those that a rule has adopted have the
  /// rule's.
  private func applyPolicyToUndeclared(_ policy: LifecyclePolicy) {
    let changed = workers.values.filter {
      !$0.isDeclared && $0.external?.rule == nil && $0.configuration.policy != policy
    }
    for id in changed.map(\.id).sorted() { setPolicy(policy, of: id) }
  }

  /// Informs other components of a configuration that is in force, and that each worker has.
  private func follow(_ new: DaemonConfiguration) {
    // An idle base that a policy doesn't allow any more is removed at once, and not at the next
    // hibernation.
    for worker in workers.values where !worker.keepsBase {
      hibernation.dropIdleBase(of: worker.id.name)
    }
    schedules.follow()
    encryption.tryEncryption(for: new)
    rules.follow(new.adoption)
    hooks?.follow()
  }

  /// Removes a worker that the configuration no longer declares, and returns the text about it.
  private func removeUndeclared(_ id: WorkerID) -> String {
    // Until the worker is adopted, the engine knows no process of it that could be stopped.
    let waits = declared.returning.whenAdopted(id) {
      // Another reload may have declared the worker again.
      if workers[id]?.isDeclared == false { remove(id) }
    }
    guard waits else {
      remove(id)
      return "\(id) removed"
    }
    undeclare(id)
    return "\(id) removed (as soon as it has been adopted from the earlier daemon)"
  }

  private func applyWorkers(_ new: DaemonConfiguration, _ policies: Policies) {
    // All workers are known before the first is started, because they may depend on each other.
    let added = new.workers.filter { workers[WorkerID($0.name)] == nil }
    for worker in added { supervision.listening.relisten(declared.addDeclared(worker)) }
    let corrected = corrected(in: new, policies)
    for worker in new.workers where isChanged(worker) { apply(worker) }
    // Earlier failures of corrected workers don't count.
    for worker in corrected { supervision.operatorRequested(.start, WorkerID(worker.name)) }
    declared.startAutomatically(added + corrected)
    supervision.starter.advance()
  }

  /// The workers that have failed, if their launch has changed or that of a worker that they depend
  /// on.
  private func corrected(
    in new: DaemonConfiguration, _ policies: Policies
  ) -> [WorkerConfiguration] {
    let failed = new.workers.filter { $0.autostart && hasFailed(WorkerID($0.name)) }
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
    guard let existing = workers[WorkerID(configuration.name)] else { return false }
    return configuration.changes(from: existing.configuration, machine: policies)
      .contains(where: \.atLaunch)
  }

  /// Why a configuration without workers isn't applied; nil if it is. A file that was emptied by
  /// accident looks like one that removes all workers.
  private func refusalOfEmpty(_ new: DaemonConfiguration) -> String? {
    let declared = workers.values.count { $0.isDeclared }
    guard new.workers.isEmpty, declared > 0 else { return nil }
    let all = declared == 1 ? "the only worker" : "all \(declared) workers"
    return
      "nothing changed: the configuration declares no workers, which would stop and remove \(all); "
      + "use `dormouse reload --allow-empty` to do that"
  }

  /// The workers of the old configuration that the new one lacks.
  private func undeclared(in new: DaemonConfiguration) -> [WorkerID] {
    let declared = Set(new.workers.map { WorkerID($0.name) })
    return workers.values.filter { $0.isDeclared && !declared.contains($0.id) }.map(\.id).sorted()
  }

  /// Whether the registry has the worker, with another configuration or as undeclared.
  private func isChanged(_ configuration: WorkerConfiguration) -> Bool {
    workers[WorkerID(configuration.name)].map {
      $0.configuration != configuration || !$0.isDeclared
    } ?? false
  }

  private func isRunning(_ id: WorkerID) -> Bool { driver.state.state(of: id)?.isAlive == true }

  /// The text of what a worker's new configuration changes, without the changes for all workers;
  /// nil if it changes nothing.
  private func changeText(
    of configuration: WorkerConfiguration, _ policies: Policies, isPreview: Bool
  ) -> String? {
    let (name, id) = (configuration.name, WorkerID(configuration.name))
    guard let existing = workers[id] else {
      guard isPreview else { return "\(name) added" }
      return "\(name) would be added\(configuration.autostart ? " and started" : "")"
    }
    guard isChanged(configuration) else { return nil }
    let changed = configuration.changes(from: existing.configuration, machine: policies)
    if changed.isEmpty { return existing.isDeclared ? nil : "\(name): in the configuration again" }
    let atLaunch = changed.filter(\.atLaunch).map(\.key)
    var text = "\(name): \(changed.map(\.text).joined(separator: ", "))"
    if !atLaunch.isEmpty {
      if isRunning(id) {
        text += " (\(atLaunch.joined(separator: ", ")) from its next start on)"
      } else if configuration.autostart, hasFailed(id) {
        text += " (it has failed, and is started again)"
      }
    }
    return text
  }
}
