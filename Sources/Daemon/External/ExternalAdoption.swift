import Control
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// The properties of an external worker.
struct ExternalWorker: Sendable {
  /// Whether the operator has allowed to terminate it when memory runs out.
  var mayBeTerminated = false
  /// The other processes that run in its manager's cgroup, if it has one.
  var jobs: ManagerJobs?
  /// The name of the rule that adopted it; nil if the operator has adopted it.
  var rule: String?
  /// The choices of the request that adopted it; nil if there were none.
  var chosen: AdoptedPolicy?
}

/// A process that a rule adopts.
struct RuledProcess {
  var process: ProcessIdentity
  var rule: AdoptionRule

  var name: String { rule.workerName(of: process.pid) }
}

/// Adopts and releases workers that another program has started and still supervises (`adopt`,
/// `release`). The daemon suspends, hibernates, wakes and reports them. It doesn't start them, stop
/// them, kill what they leave behind, or remove their cgroup. It belongs to the event loop's
/// thread.
final class ExternalAdoption {
  let ends: WorkerEnds
  /// Manages the processes that have been adopted.
  let holder: ProcessHolder
  let declared: DeclaredWorkers
  let configuration: ConfigurationInForce
  let recordWriter: WorkerRecordWriter
  /// The rules, which adopt workers too.
  weak var rules: RuleAdoption?
  /// The workers that are woken because they are being released.
  var releasing: Set<WorkerID> = []

  static let timeout = Duration.seconds(5)

  init(
    ends: WorkerEnds, holder: ProcessHolder, declared: DeclaredWorkers,
    configuration: ConfigurationInForce, recordWriter: WorkerRecordWriter
  ) {
    self.ends = ends
    self.holder = holder
    self.declared = declared
    self.configuration = configuration
    self.recordWriter = recordWriter
  }

  var driver: EngineDriver { ends.driver }
  var workers: WorkerRegistry { ends.workers }

  // MARK: adopt

  func adopt(_ call: ControlCall) {
    guard let name = call.request.worker, let wanted = call.request.adoption else {
      return call.answer(.badRequest, "`adopt` needs a name and a pid or a cgroup")
    }
    adopt(wanted, as: name) { result in
      switch result {
      case .success((let worker, let candidate)):
        let count = candidate.tree.processes.count
        let processes = count == 1 ? "" : ", \(count) processes"
        call.answer(
          .done,
          "\(worker.id) is managed (pid \(candidate.root.pid)\(processes)); while it sleeps it is "
            + "stopped by signal")
      case .failure(let refusal):
        call.answer(refusal.isMalformed ? .badRequest : .refused, refusal.text)
      }
    }
  }

  /// Adopts a process for a rule.
  ///
  /// - Parameter done: called once, perhaps at once, with the reason if the process isn't adopted.
  func adopt(_ ruled: RuledProcess, then done: @escaping (AdoptionRefusal?) -> Void) {
    let wanted = AdoptionSpecification(
      pid: ruled.process.pid, importance: ruled.rule.importance,
      mayBeTerminated: ruled.rule.mayTerminate)
    adopt(wanted, as: ruled.name, by: ruled) { result in
      if case .failure(let refusal) = result { done(refusal) } else { done(nil) }
    }
  }

  private func adopt(
    _ wanted: AdoptionSpecification, as name: String, by ruled: RuledProcess? = nil,
    then done: @escaping (Result<(WorkerUnit, ExternalProcess), AdoptionRefusal>) -> Void
  ) {
    do throws(AdoptionRefusal) { try checkName(name) } catch { return done(.failure(error)) }
    ends.processes.examine(
      wanted, as: name, in: configuration.current.library, within: Self.timeout
    ) { [unowned self] outcome in
      do throws(AdoptionRefusal) {
        guard case .done(let result) = outcome else {
          throw .refused(
            "\(name) can't be examined within \(Self.timeout.text): one of its processes is busy, "
              + "or waits for a file system")
        }
        let candidate = try result.get()
        // The worker may have changed meanwhile.
        try checkName(name)
        try checkOwners(candidate)
        if let process = ruled?.process, candidate.root.identity != process {
          throw .refused("process \(process.pid) has ended")
        }
        let worker = try register(candidate, as: name, wanted, by: ruled?.rule)
        done(.success((worker, candidate)))
      } catch { done(.failure(error)) }
    }
  }

  private func checkName(_ name: String) throws(AdoptionRefusal) {
    if declared.phase.isClosing { throw .refused("the daemon is ending") }
    guard NameRule.allows(name) else {
      throw .malformed("`\(name)` is not a valid worker name: use \(NameRule.text)")
    }
    let id = WorkerID(name)
    // A wrapped worker counts as running.
    if declared.wrappers.leads(id) { throw .refused("\(name) is the name of a wrapped worker") }
    if isAlive(id) { throw .refused("\(name) is already running") }
    if workers[id]?.isDeclared == true { throw .refused("\(name) is in the configuration") }
  }

  private func checkOwners(_ candidate: ExternalProcess) throws(AdoptionRefusal) {
    for process in candidate.tree.processes {
      guard let owner = workers.owner(of: process.pid) else { continue }
      throw .refused("process \(process.pid) (\(process.name)) belongs to the worker \(owner)")
    }
  }

  private func register(
    _ candidate: ExternalProcess, as name: String, _ specification: AdoptionSpecification,
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
        policy = try chosen.resolved(candidate.policy, over: driver.state.policy)
      } catch { throw .malformed("\(name) isn't adopted: \(error)") }
    }
    let worker = WorkerUnit(
      configuration: WorkerConfiguration(
        name: name, command: candidate.command?.arguments ?? [candidate.root.name],
        directory: candidate.command?.directory ?? "/", importance: importance,
        policy: policy),
      environment: [:], isDeclared: false)
    worker.external = ExternalWorker(
      mayBeTerminated: specification.mayBeTerminated ?? false,
      jobs: candidate.jobs, rule: rule?.name,
      chosen: chosen == AdoptedPolicy() ? nil : chosen)
    do {
      try attach(candidate, to: worker)
    } catch { throw .refused("\(name) can't be adopted: \(error)") }
    workers[worker.id] = worker
    worker.configuration.wakeWith = peers.map(\.id.name)
    worker.configuration.healthChecksWhileAsleep = answers
    ends.restarts.add(worker.id, exits: [])
    ends.log(
      .notice,
      "\(worker.id): adopted pid \(candidate.root.pid), started by another program"
        + (rule.map { " (rule \($0.name), mode \($0.mode.rawValue))" } ?? chosen.logSuffix))
    driver.send(.adopted(worker.id, worker.profile, .background))
    recordWriter.save(worker, state: .background)
    for peer in peers { addPeer(peer, with: worker.id) }
    return worker
  }

  /// Makes the worker's process known, and watches for its end.
  private func attach(_ candidate: ExternalProcess, to worker: WorkerUnit) throws {
    let configuration = worker.configuration
    let plan = LaunchPlan(
      name: configuration.name, command: configuration.command,
      directory: configuration.directory, environment: [:], cgroup: candidate.cgroup,
      logPath: ends.launchPlanner.logPath(of: worker))
    let process = try ends.memory.openProcess(candidate.root.identity, plan)
    if let memories = candidate.memories { process.store(memories) }
    try holder.adopt(process, as: worker)
  }

  func isAlive(_ id: WorkerID) -> Bool { ends.requests.isAlive(id) }

  /// Why a verb isn't carried out for a worker that another program starts and ends; nil if it is
  /// carried out.
  func foreignRefusal(_ verb: Request.Verb, _ id: WorkerID) -> String? {
    guard workers[id]?.external != nil, isAlive(id) else { return nil }
    switch verb {
    case .start, .restart, .stop, .terminate:
      return "\(id) was adopted: start and stop it with its own supervisor, or run "
        + "`dormouse release \(id)` first"
    default: return nil
    }
  }

  // MARK: peers

  // Adopted workers can wake together, such as the containers of a pod. Each names all others.

  func peers(
    of name: String, _ specification: AdoptionSpecification
  ) throws(AdoptionRefusal) -> [WorkerUnit] {
    var peers: [WorkerUnit] = []
    for peer in specification.wakeWith ?? [] where peer != name {
      guard let worker = workers[WorkerID(peer)], worker.external != nil else {
        throw .refused(
          "\(name) isn't adopted: it can't wake with \(peer), which isn't an adopted worker")
      }
      if !peers.contains(where: { $0 === worker }) { peers.append(worker) }
    }
    return peers
  }

  /// Makes a peer name the worker, so that each wakes the other.
  func addPeer(_ peer: WorkerUnit, with worker: WorkerID) {
    guard !peer.configuration.wakeWith.contains(worker.name) else { return }
    peer.configuration.wakeWith.append(worker.name)
    didChangePeers(peer)
  }

  /// Removes a worker that has ended from its peers. Otherwise the next worker of this name, which
  /// may have nothing to do with them, would wake with them.
  func removeFromPeers(_ worker: WorkerID) {
    for peer in workers.values.sorted(by: { $0.id.name < $1.id.name })
    where peer.external != nil && peer.id != worker {
      guard peer.configuration.wakeWith.contains(worker.name) else { continue }
      peer.configuration.wakeWith.removeAll { $0 == worker.name }
      didChangePeers(peer)
    }
  }

  private func didChangePeers(_ peer: WorkerUnit) {
    driver.send(.profileChanged(peer.id, peer.profile))
    save(peer)
  }
}
