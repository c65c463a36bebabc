import Lifecycle
import Policy

/// Requests of clients and components about workers. A request about a worker that an earlier daemon has left
/// waits until that worker is adopted. Belongs to the loop's thread.
final class WorkerRequests {
  private let driver: EngineDriver
  private let returning: ReturningWorkers

  init(_ driver: EngineDriver, _ returning: ReturningWorkers) {
    self.driver = driver
    self.returning = returning
  }

  /// - Parameters:
  ///   - asked: when; nil: now.
  ///   - occasion: what asks, for the reason that `ps` and `events` show; nil: the operator.
  ///   - lasting: of `protect`: how long; nil: until the daemon ends.
  ///   - answer: called once, with the engine's answer.
  func request(
    _ verb: Request.Verb, _ worker: WorkerID, asked: Instant? = nil,
    occasion: Request.Occasion? = nil, lasting: Duration? = nil,
    then answer: @escaping (Answer) -> Void
  ) {
    let isWaiting = returning.whenBack(worker) { [unowned self] in
      request(verb, worker, asked: asked, occasion: occasion, lasting: lasting, then: answer)
    }
    if !isWaiting {
      driver.request(
        verb, worker, asked: asked, occasion: occasion, lasting: lasting, then: answer)
    }
  }

  /// Also true of a worker that is being adopted.
  func isAlive(_ id: WorkerID) -> Bool {
    returning.isAdopting(id) || driver.state.state(of: id)?.isAlive == true
  }
}
