import Lifecycle
import Policy

/// The daemon's implementation for `DependencyStarter`.
final class DependenciesOfDaemon: DependencyHost {
  private let driver: EngineDriver
  private let workers: WorkerRegistry
  private let returning: ReturningWorkers
  private let restarts: RestartSupervisor
  private let requests: WorkerRequests

  init(
    driver: EngineDriver, workers: WorkerRegistry, returning: ReturningWorkers,
    restarts: RestartSupervisor, requests: WorkerRequests
  ) {
    self.driver = driver
    self.workers = workers
    self.returning = returning
    self.restarts = restarts
    self.requests = requests
  }

  var now: Instant { EventLoop.now }

  func dependencies(of id: WorkerID) -> [Dependency] {
    workers[id]?.configuration.dependsOn ?? []
  }

  func standing(of id: WorkerID) -> DependencyStanding {
    var standing = DependencyStanding(
      state: driver.state.state(of: id), isAdopting: returning.isAdopting(id))
    guard let runtime = workers[id] else { return standing }
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
    requests.request(verb, id, asked: asked, occasion: occasion, then: answer)
  }

  func record(problem: String, of id: WorkerID) { restarts.record(problem: problem, of: id) }
}
