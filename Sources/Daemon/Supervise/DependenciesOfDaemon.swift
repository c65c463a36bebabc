import Lifecycle
import Policy

// What `DependencyStarter` gets of the daemon, and the end in the opposite order.

extension Daemon: DependencyHost {
  var now: Instant { EventLoop.now }

  func dependencies(of id: WorkerID) -> [Dependency] {
    workers[id]?.configuration.dependsOn ?? []
  }

  func standing(of id: WorkerID) -> DependencyStanding {
    var standing = DependencyStanding(
      state: engine.state(of: id), isAdopting: adopting[id] != nil)
    guard let runtime = workers[id] else { return standing }
    standing.hasProcess = runtime.process != nil
    standing.willRestart = restarts.plan(of: id) != nil
    standing.lastEnd = restarts.lastEnd(of: id)
    standing.lastExit = restarts.exits(of: id)?.last?.why
    return standing
  }

  func note(problem: String, of id: WorkerID) { restarts.note(problem: problem, of: id) }

  /// Asks for the end of all whom no one else needs any more; called again as they end.
  func stopInOrder() {
    dependencyStarter.stopWaiting("the daemon is ending")
    let alive = workers.keys.filter(isAlive)
    // One that can't be killed doesn't keep the others.
    let needed = Set(
      alive.filter { !unstoppable.contains($0) }
        .flatMap { workers[$0]?.configuration.dependsOn ?? [] }.map { WorkerID($0.worker) })
    for id in alive.sorted() where !needed.contains(id) && workers[id]?.external == nil {
      guard askedToStop.insert(id).inserted else { continue }
      request(.stop, id) { [unowned self] answer in
        guard answer.code == .failed else { return }
        unstoppable.insert(id)
        stopInOrder()
      }
    }
  }
}
