import Control
import Lifecycle
import Linux
import Policy
import Supervision

/// What `ExternalAdoption` gets of the daemon.
final class ExternalsOfDaemon: ExternalHost {
  private unowned let daemon: Daemon

  init(_ daemon: Daemon) { self.daemon = daemon }

  var isClosing: Bool { daemon.ending.isClosing }

  func isAlive(_ id: WorkerID) -> Bool { daemon.isAlive(id) }

  func isWrapped(_ id: WorkerID) -> Bool { daemon.wrappers.leads(id) }

  func owner(of pid: Int32) -> WorkerID? {
    daemon.workers.values.first { $0.process?.owns(pid) == true }?.id
  }

  func examine(
    _ wanted: AdoptionSpecification, as name: String, within limit: Duration,
    then: @escaping (JobOutcome<Result<ExternalProcess, AdoptionRefusal>>) -> Void
  ) {
    daemon.jobs.run(about: "adoption of \(name)", within: limit) {
      Result { () throws(AdoptionRefusal) in try ExternalProcess.examine(wanted) }
    } then: {
      then($0)
    }
  }

  func attach(_ found: ExternalProcess, to runtime: WorkerUnit) throws {
    let configuration = runtime.configuration
    let plan = LaunchPlan(
      name: configuration.name, command: configuration.command,
      directory: configuration.directory, environment: [:], cgroup: found.cgroup,
      logPath: daemon.state.log(of: configuration.name))
    let process = try WorkerProcess.adopt(found.root.identity, plan: plan, opensMemory: false)
    if let memories = found.memories { process.adopt(memories) }
    try daemon.processHolder.attach(process, to: runtime)
  }

  func wasAdded(_ id: WorkerID) { daemon.restarts.add(id, exits: []) }

  func wake(_ id: WorkerID, then answer: @escaping (Answer) -> Void) {
    daemon.request(.wake, id, then: answer)
  }

  func letGo(of runtime: WorkerUnit) {
    daemon.hibernation.forget(runtime.id.name)
    daemon.ends.clearAway(runtime)
    daemon.records.remove(runtime.id.name)
  }

  func remove(_ id: WorkerID) { daemon.supervision.removeWorker(id) }

  func attachSuccessor(to runtime: WorkerUnit) -> Successor? {
    guard let old = runtime.process, let cgroup = old.cgroup,
      // A cgroup that can't be read is gone, and its processes with it.
      let eldest = (try? old.tree())?.processes.min(by: { $0.startTime < $1.startTime })
    else { return nil }
    do {
      let process = try WorkerProcess.adopt(eldest.identity, plan: old.plan, opensMemory: false)
      // Without a list, each look asks what runs there.
      runtime.external?.jobs = (try? process.tree()).flatMap {
        ManagerJobs(root: eldest.identity, tree: $0)
      }
      try daemon.processHolder.attach(process, to: runtime)
      daemon.processHolder.refreshMemory(of: runtime)
      return Successor(pid: eldest.pid, cgroup: cgroup.path)
    } catch { return nil }
  }

  func save(_ runtime: WorkerUnit, _ state: WorkerState) {
    daemon.saveRecord(runtime, state: state)
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) { daemon.log(priority, text) }
}
