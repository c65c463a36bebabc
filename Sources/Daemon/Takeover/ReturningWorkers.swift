import Lifecycle

/// The workers of an earlier daemon that are being adopted, and the requests that wait for it.
/// Until then these workers count as terminated for the engine, which would start them a second
/// time. `SurvivorAdoption` adopts them. It belongs to the event loop's thread.
final class ReturningWorkers {
  private var waiting: [WorkerID: [() -> Void]] = [:]

  /// Whether at least one worker is being adopted.
  var isUnderWay: Bool { !waiting.isEmpty }

  func isAdopting(_ id: WorkerID) -> Bool { waiting[id] != nil }

  /// The number of requests that wait for the worker's adoption; nil if it isn't being adopted.
  func requestCount(_ id: WorkerID) -> Int? { waiting[id]?.count }

  /// Calls `body` when the worker is adopted or has ended, after earlier bodies.
  ///
  /// - Returns: false if the worker isn't being adopted; then `body` isn't called.
  func whenAdopted(_ id: WorkerID, _ body: @escaping () -> Void) -> Bool {
    guard waiting[id] != nil else { return false }
    waiting[id]?.append(body)
    return true
  }

  func begin(_ id: WorkerID) { waiting[id] = [] }

  /// The worker is adopted or has ended. Calls the requests that waited for that.
  func finish(_ id: WorkerID) {
    for request in waiting.removeValue(forKey: id) ?? [] { request() }
  }
}
