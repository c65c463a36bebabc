import Lifecycle

/// The workers of an earlier daemon that are being brought back, and the requests that wait for that: until then the
/// engine takes these workers for terminated, and would start them a second time. `SurvivorAdoption` brings them
/// back. Belongs to the loop's thread.
final class ReturningWorkers {
  private var waiting: [WorkerID: [() -> Void]] = [:]

  /// At least one is being brought back.
  var isUnderWay: Bool { !waiting.isEmpty }

  func isAdopting(_ id: WorkerID) -> Bool { waiting[id] != nil }

  /// Requests that wait for it; nil: it isn't being brought back.
  func requestCount(_ id: WorkerID) -> Int? { waiting[id]?.count }

  /// Calls `body` when the worker is back, or has ended; what was passed earlier is called before. False: it isn't
  /// being brought back, and `body` is not called.
  func whenBack(_ id: WorkerID, _ body: @escaping () -> Void) -> Bool {
    guard waiting[id] != nil else { return false }
    waiting[id]?.append(body)
    return true
  }

  func begin(_ id: WorkerID) { waiting[id] = [] }

  /// It is back, or has ended: what waited for that is called.
  func isOver(_ id: WorkerID) {
    for request in waiting.removeValue(forKey: id) ?? [] { request() }
  }
}
