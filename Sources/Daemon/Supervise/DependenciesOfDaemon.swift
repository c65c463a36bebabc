import Lifecycle
import Policy

// What `DependencyStarter` gets of the daemon.

extension Daemon: DependencyHost {
  var now: Instant { EventLoop.now }

  func dependencies(of id: WorkerID) -> [Dependency] {
    workers[id]?.configuration.dependsOn ?? []
  }

  func standing(of id: WorkerID) -> DependencyStanding {
    var standing = DependencyStanding(
      state: engine.state(of: id), isAdopting: survivors.isAdopting(id))
    guard let runtime = workers[id] else { return standing }
    standing.hasProcess = runtime.process != nil
    standing.willRestart = restarts.plan(of: id) != nil
    standing.lastEnd = restarts.lastEnd(of: id)
    standing.lastExit = restarts.exits(of: id)?.last?.why
    return standing
  }

  func note(problem: String, of id: WorkerID) { restarts.note(problem: problem, of: id) }
}
