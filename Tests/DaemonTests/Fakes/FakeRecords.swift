import Supervision

@testable import Daemon

/// A disk that has what was saved when a test says so.
final class FakeRecords: WorkerRecords {
  var isSaved = true
  private var waiting: [() -> Void] = []

  let all: [WorkerRecord] = []
  func loadAll() -> (records: [WorkerRecord], failures: [WorkerRecordError]) { ([], []) }
  func contains(_ name: String) -> Bool { false }
  func save(_ record: WorkerRecord, onFailure: @escaping @Sendable (WorkerRecordError) -> Void) {}
  func remove(_ name: String) {}
  func afterSaves(_ body: @escaping @Sendable () -> Void) { whenSaved(body) }
  func whenSaved(_ body: @escaping () -> Void) { waiting.append(body) }

  func save() {
    isSaved = true
    let bodies = waiting
    waiting = []
    for body in bodies { body() }
  }
}
