import Control
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// The daemon's implementation for `ExternalAdoption`.
final class ExternalsOfDaemon: ExternalHost {
  struct Parts {
    let services: Services
    let state: StateDirectory
    let workers: WorkerRegistry
    let phase: DaemonPhase
    let requests: WorkerRequests
    let wrappers: RegisteredWrappers
    let restarts: RestartSupervisor
    let processes: ProcessHolder
    let ends: WorkerEnds
    let supervision: WorkerSupervision
    let recordWriter: WorkerRecordWriter
    let declared: DeclaredWorkers
    let listening: ListeningSockets
    let configuration: ConfigurationInForce
    /// The operator has released a process of a rule.
    var wasReleased: (ProcessIdentity, String) -> Void = { _, _ in }
  }

  private let parts: Parts

  init(_ parts: Parts) { self.parts = parts }

  var isClosing: Bool { parts.phase.isClosing }

  func isAlive(_ id: WorkerID) -> Bool { parts.requests.isAlive(id) }

  func isWrapped(_ id: WorkerID) -> Bool { parts.wrappers.leads(id) }

  func owner(of pid: Int32) -> WorkerID? { parts.workers.owner(of: pid) }

  func examine(
    _ wanted: AdoptionSpecification, as name: String, within limit: Duration,
    then: @escaping (JobOutcome<Result<ExternalProcess, AdoptionRefusal>>) -> Void
  ) {
    let library = parts.configuration.current.library
    parts.services.jobs.run(about: "adoption of \(name)", within: limit) {
      Result { () throws(AdoptionRefusal) in
        let named: LifecyclePolicy?
        do throws(SettingError) {
          named = try wanted.chosenPolicy.load(from: library)
        } catch { throw .malformed("\(name) isn't adopted: \(error)") }
        var found = try ExternalProcess.examine(wanted)
        found.policy = named
        return found
      }
    } then: {
      then($0)
    }
  }

  func attach(_ found: ExternalProcess, to runtime: WorkerUnit) throws {
    let configuration = runtime.configuration
    let plan = LaunchPlan(
      name: configuration.name, command: configuration.command,
      directory: configuration.directory, environment: [:], cgroup: found.cgroup,
      logPath: parts.state.log(of: configuration.name))
    let process = try WorkerProcess.adopt(found.root.identity, plan: plan, opensMemory: false)
    if let memories = found.memories { process.adopt(memories) }
    try parts.processes.adopt(process, as: runtime)
  }

  func wasAdded(_ id: WorkerID) { parts.restarts.add(id, exits: []) }

  func wake(_ id: WorkerID, then answer: @escaping (Answer) -> Void) {
    parts.requests.request(.wake, id, then: answer)
  }

  func letGo(of runtime: WorkerUnit) {
    parts.services.hibernation.forget(runtime.id.name)
    parts.ends.clearAway(runtime)
    parts.services.records.remove(runtime.id.name)
  }

  func remove(_ id: WorkerID) { parts.supervision.removeWorker(id) }

  func introduce(_ configuration: WorkerConfiguration) {
    parts.declared.addDeclared(configuration)
    if let runtime = parts.workers[WorkerID(configuration.name)] {
      parts.listening.relisten(runtime)
    }
  }

  func attachSuccessor(to runtime: WorkerUnit) -> Successor? {
    guard let old = runtime.process, let cgroup = old.cgroup,
      // A cgroup that can't be read has been removed, and its processes have ended.
      let eldest = (try? old.tree())?.processes.min(by: { $0.startTime < $1.startTime })
    else { return nil }
    do {
      let process = try WorkerProcess.adopt(eldest.identity, plan: old.plan, opensMemory: false)
      // Without a list, each look asks what runs there.
      runtime.external?.jobs = (try? process.tree()).flatMap {
        ManagerJobs(root: eldest.identity, tree: $0)
      }
      try parts.processes.adopt(process, as: runtime)
      parts.processes.refreshMemory(of: runtime)
      return Successor(pid: eldest.pid, cgroup: cgroup.path)
    } catch { return nil }
  }

  func save(_ runtime: WorkerUnit, _ state: WorkerState) {
    parts.recordWriter.save(runtime, state: state)
  }

  func wasReleased(_ process: ProcessIdentity, from rule: String) {
    parts.wasReleased(process, rule)
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) {
    parts.services.log(priority, text)
  }
}
