import Lifecycle

/// The workers of an earlier daemon that are being adopted, and the requests that wait for that: until then
/// these workers count as terminated for the engine, which would start them a second time. `SurvivorAdoption`
/// adopts them. Belongs to the loop's thread.
final class ReturningWorkers {
  private var waiting: [WorkerID: [() -> Void]] = [:]

  /// At least one is being adopted.
  var isUnderWay: Bool { !waiting.isEmpty }

  func isAdopting(_ id: WorkerID) -> Bool { waiting[id] != nil }

  /// Requests that wait for it; nil: it isn't being adopted.
  func requestCount(_ id: WorkerID) -> Int? { waiting[id]?.count }

  /// Calls `body` when the worker is adopted, or has ended; earlier bodies are called first. False: it isn't
  /// being adopted, and `body` is not called.
  func whenBack(_ id: WorkerID, _ body: @escaping () -> Void) -> Bool {
    guard waiting[id] != nil else { return false }
    waiting[id]?.append(body)
    return true
  }

  func begin(_ id: WorkerID) { waiting[id] = [] }

  /// It is adopted, or has ended: what waited for that is called.
  func isOver(_ id: WorkerID) {
    for request in waiting.removeValue(forKey: id) ?? [] { request() }
  }
}
