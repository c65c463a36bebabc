import Lifecycle
import Policy

/// What `DependencyStarter` gets of the daemon.
final class DependenciesOfDaemon: DependencyHost {
  private unowned let daemon: Daemon

  init(_ daemon: Daemon) { self.daemon = daemon }

  var now: Instant { EventLoop.now }

  func dependencies(of id: WorkerID) -> [Dependency] {
    daemon.workers[id]?.configuration.dependsOn ?? []
  }

  func standing(of id: WorkerID) -> DependencyStanding {
    var standing = DependencyStanding(
      state: daemon.engine.state(of: id), isAdopting: daemon.survivors.isAdopting(id))
    guard let runtime = daemon.workers[id] else { return standing }
    let restarts = daemon.restarts
    standing.hasProcess = runtime.process != nil
    standing.willRestart = restarts.plan(of: id) != nil
    standing.lastEnd = restarts.lastEnd(of: id)
    standing.lastExit = restarts.exits(of: id)?.last?.why
    return standing
  }

  func request(
    _ verb: Request.Verb, _ id: WorkerID, asked: Instant?, occasion: Request.Occasion?,
    then answer: @escaping (Answer) -> Void
  ) {
    daemon.request(verb, id, asked: asked, occasion: occasion, then: answer)
  }

  func note(problem: String, of id: WorkerID) { daemon.restarts.note(problem: problem, of: id) }
}
