import Lifecycle
import Policy

/// Requests of clients and components about workers. If an earlier daemon has left the worker, the
/// request waits until the worker is adopted. Belongs to the loop's thread.
struct WorkerRequests {
  let driver: EngineDriver
  let returning: ReturningWorkers

  /// Sends the request to the engine, now or when the worker has been adopted.
  /// - Parameters:
  ///   - asked: when the client asked; nil: now.
  ///   - occasion: what asks, for the reason that `ps` and `events` show; nil: the operator.
  ///   - lasting: how long `protect` holds; nil: until the daemon ends.
  ///   - answer: called once, with the engine's answer.
  func request(
    _ verb: Request.Verb, _ worker: WorkerID, asked: Instant? = nil,
    occasion: Request.Occasion? = nil, lasting: Duration? = nil,
    then answer: @escaping (Answer) -> Void
  ) {
    let isWaiting = returning.whenAdopted(worker) {
      request(verb, worker, asked: asked, occasion: occasion, lasting: lasting, then: answer)
    }
    if isWaiting { return }
    let id = driver.replies.await(answer)
    driver.send(
      .request(
        Request(
          id: id, verb: verb, worker: worker, asked: asked, occasion: occasion, lasting: lasting)))
  }

  /// True if the worker is alive or is being adopted.
  func isAlive(_ id: WorkerID) -> Bool {
    returning.isAdopting(id) || driver.state.state(of: id)?.isAlive == true
  }
}
