import Control
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// The properties of an external worker.
struct ExternalWorker: Sendable {
  /// The operator has allowed to terminate it when memory runs out.
  var mayBeTerminated = false
  /// In its manager's cgroup: other processes that run there.
  var jobs: ManagerJobs?
  /// The name of the rule by which it was adopted; nil: the operator has adopted it.
  var rule: String?
  /// What the request for its adoption has chosen; nil: nothing.
  var chosen: AdoptedPolicy?
}

/// A process that a rule takes.
struct RuledProcess {
  var process: ProcessIdentity
  var rule: AdoptionRule

  var name: String { rule.workerName(of: process.pid) }
}

/// `adopt` and `release`: workers that another program has started and still supervises. The daemon suspends,
/// hibernates, wakes and reports them. It doesn't start them, stop them, kill what they leave behind, or remove
/// their cgroup. Belongs to the loop's thread.
final class ExternalAdoption {
  let driver: EngineDriver
  let workers: WorkerRegistry
  let host: any ExternalHost
  /// Those that are woken because they are being given back.
  private var releasing: Set<WorkerID> = []

  static let patience = Duration.seconds(5)

  init(_ driver: EngineDriver, _ workers: WorkerRegistry, host: any ExternalHost) {
    self.driver = driver
    self.workers = workers
    self.host = host
  }

  // MARK: adopt

  func adopt(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    func refuse(_ error: AdoptionRefusal) {
      respond(
        ControlResponse(
          id: request.id, result: error.isMalformed ? .badRequest : .refused, text: error.text))
    }
    do throws(AdoptionRefusal) {
      guard let name = request.worker, let specification = request.adoption else {
        throw .malformed("`adopt` needs a name and a pid or a cgroup")
      }
      try checkName(name)
      host.examine(specification, as: name, within: Self.patience) { [unowned self] outcome in
        do throws(AdoptionRefusal) {
          let found = try Self.found(outcome, name)
          // The worker may have changed meanwhile.
          try checkName(name)
          try checkOwners(found)
          let runtime = try register(found, as: name, specification)
          respond(
            ControlResponse(
              id: request.id, result: .done, text: Self.adoptionText(runtime, found)))
        } catch { refuse(error) }
      }
    } catch { refuse(error) }
  }

  /// - Parameter done: called once, perhaps at once, with the reason if it isn't adopted.
  func adopt(_ ruled: RuledProcess, then done: @escaping (AdoptionRefusal?) -> Void) {
    let specification = AdoptionSpecification(
      pid: ruled.process.pid, importance: ruled.rule.importance,
      mayBeTerminated: ruled.rule.mayTerminate)
    do throws(AdoptionRefusal) {
      try checkName(ruled.name)
    } catch { return done(error) }
    host.examine(specification, as: ruled.name, within: Self.patience) { [unowned self] outcome in
      do throws(AdoptionRefusal) {
        let found = try Self.found(outcome, ruled.name)
        try checkName(ruled.name)
        try checkOwners(found)
        guard found.root.identity == ruled.process else {
          throw .refused("process \(ruled.process.pid) has ended")
        }
        _ = try register(found, as: ruled.name, specification, by: ruled.rule)
        done(nil)
      } catch { done(error) }
    }
  }

  private static func found(
    _ outcome: JobOutcome<Result<ExternalProcess, AdoptionRefusal>>, _ name: String
  ) throws(AdoptionRefusal) -> ExternalProcess {
    guard case .done(let result) = outcome else {
      throw .refused(
        "\(name) can't be examined within \(patience.spoken): one of its processes is busy, or waits "
          + "for a file system")
    }
    return try result.get()
  }

  private func checkName(_ name: String) throws(AdoptionRefusal) {
    if host.isClosing { throw .refused("the daemon is ending") }
    if let problem = WorkerName.problem(with: name) {
      throw .malformed("`\(name)` is not a valid worker name: \(problem)")
    }
    let id = WorkerID(name)
    if host.isAlive(id) { throw .refused("\(name) is already running") }
    if host.isWrapped(id) { throw .refused("\(name) is the name of a wrapped worker") }
    if workers[id]?.isDeclared == true { throw .refused("\(name) is in the configuration") }
  }

  private func checkOwners(_ found: ExternalProcess) throws(AdoptionRefusal) {
    for process in found.tree.processes {
      guard let owner = host.owner(of: process.pid) else { continue }
      throw .refused("process \(process.pid) (\(process.name)) belongs to the worker \(owner)")
    }
  }

  private static func adoptionText(_ runtime: WorkerUnit, _ found: ExternalProcess) -> String {
    let processes =
      found.tree.processes.count == 1 ? "" : ", \(found.tree.processes.count) processes"
    return
      "\(runtime.id) is managed (pid \(found.root.pid)\(processes)); while it sleeps it is stopped by "
      + "signal"
  }

  private func register(
    _ found: ExternalProcess, as name: String, _ specification: AdoptionSpecification,
    by rule: AdoptionRule? = nil
  ) throws(AdoptionRefusal) -> WorkerUnit {
    let importance = specification.importance ?? 0
    guard (0...100).contains(importance) else {
      throw .malformed("importance \(importance) is not from 0 to 100")
    }
    let peers = try peers(of: name, specification)
    let answers = try specification.answers()
    let chosen = specification.chosenPolicy
    let policy: LifecyclePolicy
    if let rule {
      policy = rule.effectivePolicy
    } else {
      do throws(SettingError) {
        policy = try chosen.resolved(found.policy, over: driver.state.policy)
      } catch { throw .malformed("\(name) isn't adopted: \(error)") }
    }
    let runtime = WorkerUnit(
      configuration: WorkerConfiguration(
        name: name, command: found.command?.arguments ?? [found.root.name],
        directory: found.command?.directory ?? "/", importance: importance,
        policy: policy),
      environment: [:], isDeclared: false)
    runtime.external = ExternalWorker(
      mayBeTerminated: specification.mayBeTerminated ?? false,
      jobs: found.jobs, rule: rule?.name,
      chosen: chosen == .machines ? nil : chosen)
    do {
      try host.attach(found, to: runtime)
    } catch { throw .refused("\(name) can't be adopted: \(error)") }
    workers[runtime.id] = runtime
    runtime.configuration.wakeWith = peers.map(\.id.name)
    runtime.configuration.healthChecksWhileAsleep = answers
    host.wasAdded(runtime.id)
    host.log(
      .notice,
      "\(runtime.id): adopted pid \(found.root.pid), started by another program"
        + (rule.map { " (rule \($0.name), mode \($0.mode.rawValue))" } ?? chosen.note))
    driver.send(.adopted(runtime.id, runtime.profile, .background))
    host.save(runtime, .background)
    for peer in peers { join(peer, with: runtime.id) }
    return runtime
  }

  /// Another program starts and ends it: returns why a verb isn't carried out; nil: it is.
  func foreignRefusal(_ verb: Request.Verb, _ id: WorkerID) -> String? {
    guard workers[id]?.external != nil, host.isAlive(id) else { return nil }
    switch verb {
    case .start, .restart, .stop, .terminate:
      return "\(id) was adopted: start and stop it with its own supervisor, or run "
        + "`dormouse release \(id)` first"
    default: return nil
    }
  }

  // MARK: release

  /// Returns it as it was: running, with all its memory, and unknown to the daemon.
  func release(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    func answer(_ result: ControlResponse.Result, _ text: String) {
      respond(ControlResponse(id: request.id, result: result, text: text))
    }
    guard let name = request.worker else {
      return answer(.badRequest, "`release` needs a worker")
    }
    let id = WorkerID(name)
    guard let runtime = workers[id] else {
      return answer(.unknownWorker, "there is no worker named \(name)")
    }
    guard runtime.external != nil else {
      return answer(
        .refused, "\(name) was started by Dormouse, not adopted; `dormouse stop \(name)` ends it")
    }
    let (rule, process) = (runtime.external?.rule, runtime.process?.identity)
    release(id) { [unowned self] failure in
      if let failure { return answer(.failed, failure) }
      guard let rule, let process else { return answer(.done, "\(name) is no longer managed") }
      host.wasReleased(process, from: rule)
      answer(
        .done,
        "\(name) is no longer managed; the rule \(rule) doesn't adopt it again until the rule is "
          + "changed")
    }
  }

  /// - Parameter done: with a sentence if it couldn't be woken; then it stays a worker of this daemon.
  func release(_ id: WorkerID, then done: @escaping (String?) -> Void) {
    guard let runtime = workers[id], host.isAlive(id) else { return done(nil) }
    if !runtime.isBusy, driver.state.state(of: id)?.runs == true {
      letGo(runtime)
      return done(nil)
    }
    releasing.insert(id)
    host.wake(id) { [unowned self] answer in
      guard answer.code == .done else {
        releasing.remove(id)
        return done(answer.text)
      }
      // It was released twice, or has ended since it was woken; another may have its name by now.
      guard workers[id] === runtime else { return done(nil) }
      // The answer may have waited for the disk, and a suspension may have been under way.
      release(id, then: done)
    }
  }

  /// Why it isn't suspended any more; nil: it may be.
  func refusalToSuspend(_ id: WorkerID) -> String? {
    releasing.contains(id) ? "it is being released" : nil
  }

  private func letGo(_ runtime: WorkerUnit) {
    releasing.remove(runtime.id)
    host.log(.notice, "\(runtime.id): released")
    host.letGo(of: runtime)
    driver.send(.released(runtime.id))
    remove(runtime)
  }

  private func remove(_ runtime: WorkerUnit) {
    part(runtime.id)
    host.remove(runtime.id)
    // A reload has declared its name meanwhile: from now on that is the configuration's worker.
    if runtime.isDeclared { host.introduce(runtime.configuration) }
  }

  // MARK: its end

  /// The processes that it leaves behind belong to its manager.
  func externalRootHasEnded(_ runtime: WorkerUnit) {
    releasing.remove(runtime.id)
    if !runtime.isKilled, followSuccessor(runtime) { return }
    let id = runtime.id
    host.letGo(of: runtime)
    driver.send(.exited(id, .unknown))
    driver.send(.removed(id))
    remove(runtime)
  }

  private func followSuccessor(_ runtime: WorkerUnit) -> Bool {
    guard let successor = host.attachSuccessor(to: runtime) else { return false }
    if let state = driver.state.state(of: runtime.id) { host.save(runtime, state) }
    host.log(
      .info, "\(runtime.id): pid \(successor.pid) is now the first process of \(successor.cgroup)")
    return true
  }
}
