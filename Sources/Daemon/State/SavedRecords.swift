/// The state on disk, for the parts that rely on it.
protocol SavedState: AnyObject {
  /// All that was saved is on disk.
  var isSaved: Bool { get }

  /// Calls `body` on the loop, later, when the disk has what was saved before this call. On a disk that doesn't
  /// answer it isn't called.
  func whenSaved(_ body: @escaping () -> Void)
}

/// The workers' records. Belongs to the loop's thread.
final class SavedRecords: SavedState {
  private let records: WorkerRecordKeeper
  private let loop: LoopReturn

  init(_ records: WorkerRecordKeeper, _ loop: LoopReturn) {
    self.records = records
    self.loop = loop
  }

  var isSaved: Bool { records.isSaved }

  func whenSaved(_ body: @escaping () -> Void) {
    let done: @Sendable (Bool) -> Void = loop.callback { _ in body() }
    records.afterSaves { done(true) }
  }
}
