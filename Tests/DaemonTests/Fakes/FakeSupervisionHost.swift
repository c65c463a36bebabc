import Lifecycle
import Policy

@testable import Daemon

/// The daemon as supervision and dependencies see it; notes what is asked.
final class FakeSupervisionHost: SupervisionHost, DependencyHost {
  private(set) var calls: [String] = []
  var needs: [WorkerID: [Dependency]] = [:]
  var standings: [WorkerID: DependencyStanding] = [:]
  private(set) var asked: [String] = []

  func dropStore(of id: WorkerID) { calls.append("drop store of \(id)") }
  func hasEnded(_ id: WorkerID, _ cause: Cause) {
    calls.append("\(id) has ended: \(cause.sentence)")
  }
  func followLiveness(of id: WorkerID, _ transition: Transition?) {
    calls.append("liveness of \(id)\(transition == nil ? ", as configured" : "")")
  }
  func forgetTraffic(of id: WorkerID) { calls.append("forget traffic of \(id)") }
  func remove(_ id: WorkerID) { calls.append("remove \(id)") }

  var now: Instant { .zero }
  func dependencies(of id: WorkerID) -> [Dependency] { needs[id] ?? [] }
  func standing(of id: WorkerID) -> DependencyStanding {
    standings[id] ?? DependencyStanding(state: .terminated)
  }
  func request(
    _ verb: Request.Verb, _ id: WorkerID, asked: Instant?, occasion: Request.Occasion?,
    then answer: @escaping (Answer) -> Void
  ) {
    self.asked.append("\(verb) \(id)")
  }
  func record(problem: String, of id: WorkerID) { calls.append("problem of \(id): \(problem)") }
}
