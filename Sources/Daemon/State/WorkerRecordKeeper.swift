import Lifecycle
import Linux
import Policy
import Supervision
import Synchronization

/// The workers' records on disk. Tests have a disk that is slow or loses power.
protocol WorkerRecords: AnyObject {
  /// Reads all records when the daemon starts.
  func loadAll() throws(WorkerRecordError) -> (
    records: [WorkerRecord], failures: [WorkerRecordError]
  )
  /// All records that were saved or found, and not removed.
  var all: [WorkerRecord] { get }
  /// Whether there is a file for a worker, damaged or not. It is for the daemon's start.
  func contains(_ name: String) -> Bool
  /// Whether there is a file for a worker whose name has the form that names of files have.
  func contains(sanitised name: String) -> Bool
  func remove(_ name: String)
  /// Saves a record in place of the last one.
  ///
  /// - Parameter onFailure: called on another thread.
  func save(_ record: WorkerRecord, onFailure: @escaping @Sendable (WorkerRecordError) -> Void)
  /// Calls `body` on another thread, when the disk has what was saved before this call.
  func afterSaves(_ body: @escaping @Sendable () -> Void)
  /// Whether the disk has all that was saved.
  var isSaved: Bool { get }
  /// Calls `body` later on the event loop, when the disk has what was saved before this call. It
  /// isn't called if the disk doesn't answer.
  func whenSaved(_ body: @escaping () -> Void)
}

/// Keeps the records of running workers, for the next daemon. The last saved record is known at
/// once. The disk has it a moment later, in the same order.
///
/// A crash between the two leaves an older record, which the next daemon compares with what the
/// kernel reports about the worker. Two cases need the disk first:
///
/// - A record that says `hibernated` without an image means that the memory is lost. So a resume
///   doesn't remove the image, and the worker doesn't run, before `barrier` has returned. If the
///   record still says so then, the worker's cgroup gets a note (`ResumeMarker`).
/// - An image without a record is removed. So the image gets its name when there is a record
///   (`imageObstacle`).
final class WorkerRecordKeeper: WorkerRecords {
  let store: WorkerRecordStore
  /// Calls back on the event loop of the daemon that waits for the disk. `Services` sets it.
  var loop: LoopReturn?
  private let queue = WorkQueue(name: "dormouse-recs")
  private var entries: [String: Entry] = [:]
  /// The number of saves that aren't done yet.
  private let pending = Pending()

  /// A record by reference: a dictionary reserves memory for more values than it has, and a record
  /// takes 290 bytes.
  private final class Entry {
    let record: WorkerRecord
    init(_ record: WorkerRecord) { self.record = record }
  }

  private final class Pending: Sendable { let count = Atomic(0) }

  init(directory: String) throws(WorkerRecordError) {
    store = try WorkerRecordStore(directory: directory)
  }

  /// Reads all records when the daemon starts.
  func loadAll() throws(WorkerRecordError) -> (
    records: [WorkerRecord], failures: [WorkerRecordError]
  ) {
    let result = try store.loadAll()
    for record in result.records { entries[record.name] = Entry(record) }
    return result
  }

  /// The last record that was saved or found.
  func record(of name: String) -> WorkerRecord? { entries[name]?.record }

  var all: [WorkerRecord] { entries.values.map(\.record) }

  func contains(_ name: String) -> Bool { store.contains(name) }
  func contains(sanitised name: String) -> Bool { store.contains(sanitised: name) }

  func save(
    _ record: WorkerRecord, onFailure: @escaping @Sendable (WorkerRecordError) -> Void
  ) {
    entries[record.name] = Entry(record)
    pending.count.add(1, ordering: .acquiringAndReleasing)
    queue.submit { [store, pending] in
      defer { pending.count.subtract(1, ordering: .acquiringAndReleasing) }
      do throws(WorkerRecordError) { try store.save(record) } catch { onFailure(error) }
    }
  }

  func remove(_ name: String) {
    entries[name] = nil
    queue.submit { [store] in store.remove(name) }
  }

  var isSaved: Bool { pending.count.load(ordering: .acquiring) == 0 }

  func afterSaves(_ body: @escaping @Sendable () -> Void) { queue.submit(body) }

  func whenSaved(_ body: @escaping () -> Void) {
    guard let loop else { return }
    let done: @Sendable (Bool) -> Void = loop.callback { _ in body() }
    queue.submit { done(true) }
  }

  /// The maximum wait of a hibernation for its record: a client may be waiting for its end.
  static let imageTimeout = Duration.seconds(5)

  /// A function that checks whether a later daemon would find a worker, that is, whether the disk
  /// has a record of it after what was saved before this call. Without a record, that daemon would
  /// remove the worker's image as that of a worker that doesn't exist any more
  /// (`removeOrphanedImages`), and with it the only copy of the worker's memory. So a hibernation
  /// waits before its image gets its name. Its pages are read and compressed meanwhile. If the
  /// record is known to be missing, the hibernation fails before it starts.
  ///
  /// - Returns: the function, which mustn't run on the event loop's thread. `waits`: it waits for
  ///   the disk, until the timeout from this call at most. It returns why a later daemon may not
  ///   find the worker; nil: it would find it, or that isn't known yet and `waits` is false.
  func imageObstacle(
    of name: String, within timeout: Duration = imageTimeout
  ) -> @Sendable (_ waits: Bool) -> String? {
    let end = Deadline(in: timeout)
    let isAnswered = OneTimeEvent()
    let answer = Mutex<Bool?>(nil)
    queue.submit { [store] in
      let exists = store.contains(name)
      answer.withLock { $0 = exists }
      isAnswered.raise()
    }
    return { waits in
      if waits { isAnswered.wait(until: end) }
      switch answer.withLock({ $0 }) {
      case true?: return nil
      case false?:
        return "its record can't be written: the next daemon would not find it, and would remove "
          + "its image"
      case nil:
        if !waits, !end.hasPassed { return nil }
        return "its record isn't on the disk after \(timeout.text): the next daemon would not find "
          + "it, and would remove its image"
      }
    }
  }

  /// A function that waits until the disk has what was saved before this call. It mustn't run on
  /// the event loop's thread.
  ///
  /// - Returns: the function. It returns why the record on the disk still says that the worker is
  ///   hibernated; nil if it doesn't.
  func barrier(_ name: String) -> @Sendable () -> String? {
    let done = OneTimeEvent()
    let obstacle = Mutex<String?>(nil)
    queue.submit { [store] in
      let result = store.contains(name) ? Self.obstacle(store, name) : nil
      obstacle.withLock { $0 = result }
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
      // A damaged record isn't valid for the next daemon, so it doesn't say that the worker is
      // hibernated.
      if case .damaged = error { return nil }
      return "its record may still say that it is hibernated: \(error)"
    }
  }

  /// Waits at most 10 s for the disk when the daemon ends.
  func drain() { queue.drain(within: .seconds(10)) }
}
