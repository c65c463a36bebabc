import Lifecycle
import Linux
import Supervision
import Synchronization

/// The disk with the workers' records. Tests have one that is slow, or loses power.
protocol WorkerRecords: AnyObject {
  /// At the daemon's start.
  func loadAll() throws(WorkerRecordError) -> (
    records: [WorkerRecord], failures: [WorkerRecordError]
  )
  /// All that were saved or found, and not removed.
  var all: [WorkerRecord] { get }
  /// Whether there is a file, be it damaged. At the daemon's start.
  func contains(_ name: String) -> Bool
  func remove(_ name: String)
  /// - Parameter onFailure: called on another thread.
  func save(_ record: WorkerRecord, onFailure: @escaping @Sendable (WorkerRecordError) -> Void)
  /// Calls `body`, on another thread, when the disk has what was saved before this call.
  func afterSaves(_ body: @escaping @Sendable () -> Void)
  /// All that was saved is on disk.
  var isSaved: Bool { get }
  /// Calls `body` on the loop, later, when the disk has what was saved before this call. On a disk that doesn't
  /// answer it isn't called.
  func whenSaved(_ body: @escaping () -> Void)
}

/// The records of running workers, for the next daemon. What was saved last is known at once; the disk has
/// it a moment later, in the same order.
///
/// A crash between the two leaves an older record, which the next daemon compares with what the kernel reports
/// of the worker. Two cases need the disk first. A record that says `hibernated` without an image means that
/// the memory is lost, so a resume doesn't remove the image, and the worker doesn't run, before `barrier` has
/// returned; if the record still says so then, the worker's cgroup gets a note (`ResumeNote`). An
/// image without a record is removed, so it gets its name when there is a record (`RecordWait`).
final class WorkerRecordKeeper: WorkerRecords {
  let store: WorkerRecordStore
  /// Of the daemon that waits for the disk; `Services` sets it.
  var loop: LoopReturn?
  private let queue = WorkQueue(name: "dormouse-recs")
  private var known: [String: Known] = [:]
  /// Saves that aren't done yet.
  private let pending = Pending()

  /// An object, because a dictionary reserves memory for more values than it has, and a record is 290 bytes.
  private final class Known {
    let record: WorkerRecord
    init(_ record: WorkerRecord) { self.record = record }
  }

  private final class Pending: Sendable { let count = Atomic(0) }

  init(directory: String) throws(WorkerRecordError) {
    store = try WorkerRecordStore(directory: directory)
  }

  /// At the daemon's start.
  func loadAll() throws(WorkerRecordError) -> (
    records: [WorkerRecord], failures: [WorkerRecordError]
  ) {
    let found = try store.loadAll()
    for record in found.records { known[record.name] = Known(record) }
    return found
  }

  /// The last one that was saved or found.
  func record(of name: String) -> WorkerRecord? { known[name]?.record }

  var all: [WorkerRecord] { known.values.map(\.record) }

  func contains(_ name: String) -> Bool { store.contains(name) }

  func save(
    _ record: WorkerRecord, onFailure: @escaping @Sendable (WorkerRecordError) -> Void
  ) {
    known[record.name] = Known(record)
    pending.count.add(1, ordering: .acquiringAndReleasing)
    queue.submit { [store, pending] in
      defer { pending.count.subtract(1, ordering: .acquiringAndReleasing) }
      do throws(WorkerRecordError) { try store.save(record) } catch { onFailure(error) }
    }
  }

  func remove(_ name: String) {
    known[name] = nil
    queue.submit { [store] in store.remove(name) }
  }

  var isSaved: Bool { pending.count.load(ordering: .acquiring) == 0 }

  func afterSaves(_ body: @escaping @Sendable () -> Void) { queue.submit(body) }

  func whenSaved(_ body: @escaping () -> Void) {
    guard let loop else { return }
    let done: @Sendable (Bool) -> Void = loop.callback { _ in body() }
    queue.submit { done(true) }
  }

  /// As `afterSaves`; `body` gets whether there is a record of that name.
  func whenSaved(_ name: String, _ body: @escaping @Sendable (_ isThere: Bool) -> Void) {
    queue.submit { [store] in body(store.contains(name)) }
  }

  /// Waits until the disk has what was saved before this call; for another thread than the loop's.
  ///
  /// - Returns: why the record on the disk still says that the worker is hibernated; nil: it
  /// doesn't.
  func barrier(_ name: String) -> @Sendable () -> String? {
    let done = Signal()
    let obstacle = Mutex<String?>(nil)
    queue.submit { [store] in
      let found = store.contains(name) ? Self.obstacle(store, name) : nil
      obstacle.withLock { $0 = found }
      done.raise()
    }
    return {
      done.wait()
      return obstacle.withLock { $0 }
    }
  }

  private static func obstacle(_ store: WorkerRecordStore, _ name: String) -> String? {
    do throws(WorkerRecordError) {
      guard try store.load(name).state == WorkerState.hibernated.rawValue else { return nil }
      return "its record can't be written and still says that it is hibernated"
    } catch {
      // The next daemon finds no valid record.
      if case .damaged = error { return nil }
      return "its record may still say that it is hibernated: \(error)"
    }
  }

  /// At the daemon's end.
  func drain() { queue.drain(within: .seconds(10)) }
}
