import Lifecycle
import Policy
import Supervision

@testable import Daemon

/// A slow disk with the workers' records. If a daemon dies, the disk keeps what was written by
/// then.
final class ShellDisk: WorkerRecords {
  private let clock: FakeLoop
  private var savedAt = Instant.zero
  private var delay = Duration.zero
  /// The records that were saved last, whether the disk has them or not.
  private(set) var lastSaved: [String: WorkerRecord]
  private var stored: [String: WorkerRecord]
  /// Writes that aren't complete; nil: the record is removed.
  private var underWay: [(at: Instant, name: String, record: WorkerRecord?)] = []
  /// Returns the pid of a worker; nil: it has no process, and isn't recorded.
  var pid: (WorkerID) -> Int32? = { _ in nil }
  /// Whether the completion of a write is never reported.
  var losesReport: () -> Bool = { false }

  init(_ clock: FakeLoop, _ records: [String: WorkerRecord] = [:]) {
    self.clock = clock
    (lastSaved, stored) = (records, records)
  }

  func save() { savedAt = max(savedAt, clock.now + delay) }

  var all: [WorkerRecord] { Array(lastSaved.values) }
  func contains(_ name: String) -> Bool { lastSaved[name] != nil }
  // The simulated workers have names that are the same in names of files.
  func contains(sanitised name: String) -> Bool { contains(name) }

  func loadAll() throws(WorkerRecordError) -> (
    records: [WorkerRecord], failures: [WorkerRecordError]
  ) { (lastSaved.values.sorted { $0.name < $1.name }, []) }

  func save(
    _ record: WorkerRecord, onFailure: @escaping @Sendable (WorkerRecordError) -> Void
  ) {
    guard let pid = pid(WorkerID(record.name)) else { return }
    var record = record
    (record.process, record.session) = (.init(pid: pid, startTime: 1), pid)
    save()
    lastSaved[record.name] = record
    underWay.append((savedAt, record.name, record))
  }

  func afterSaves(_ body: @escaping @Sendable () -> Void) { whenSaved(body) }

  func remove(_ name: String) {
    lastSaved[name] = nil
    underWay.append((max(savedAt, clock.now), name, nil))
  }

  func stall(for delay: Duration) {
    self.delay = delay
    save()
  }

  /// Completes all writes. A resume waits for that.
  func drain() { store { _ in true } }

  /// The records that the next daemon reads if this one dies now.
  func records() -> [String: WorkerRecord] {
    store { $0 <= clock.now }
    return stored
  }

  private func store(_ isDone: (Instant) -> Bool) {
    let done = underWay.prefix { isDone($0.at) }
    for each in done { stored[each.name] = each.record }
    underWay.removeFirst(done.count)
  }

  var isSaved: Bool { clock.now >= savedAt }

  func whenSaved(_ body: @escaping () -> Void) {
    if losesReport() { return }
    clock.after(max(.zero, savedAt - clock.now), do: body)
  }
}
