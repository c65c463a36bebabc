import Control
import Lifecycle
import Linux
import Policy

/// Makes jetsam reports when workers are terminated for lack of memory, writes them, and reads them
/// again. It belongs to the event loop's thread.
final class JetsamKeeper {
  private let store: JetsamStore
  /// The ids of the reports, the newest first: those that were on the disk when the daemon started,
  /// and those made since.
  private(set) var ids: [String]
  private let disk: WorkQueue
  private let loop: LoopReturn
  private let log: DaemonLog
  private var burst: Burst?
  /// Finds the largest processes of the machine, on another thread; nil: reports are without them.
  var measure: ((@escaping (JetsamRecord.Processes?) -> Void) -> Void)?

  /// The state of the machine when the first victim of a burst was chosen.
  private final class Burst {
    /// The host's memory.
    var host: JetsamRecord.Host?
    /// The largest processes. They may be found before or after the report is made.
    var processes: JetsamRecord.Processes?
    /// The report that was written without them.
    var record: JetsamRecord?
  }

  init(directory: String, disk: WorkQueue, loop: LoopReturn, log: DaemonLog) {
    store = JetsamStore(directory: directory)
    ids = store.ids()
    self.disk = disk
    self.loop = loop
    self.log = log
  }

  /// Reads a report. `then` is called on the event loop, in the order of the calls, with nil if
  /// there is no such report.
  func load(_ id: String, then: @escaping (JetsamRecord?) -> Void) {
    let done: @Sendable (JetsamRecord?) -> Void = loop.callback(then)
    disk.submit { [store] in done(store.load(id)) }
  }

  /// Records the machine's state when a victim has been chosen. Only the first victim of a burst
  /// counts. The report is made when the burst is over.
  ///
  /// - Parameter stall: shares of the time, in percent.
  func recordVictim(_ engine: Engine, stall: (some: Double, full: Double)?) {
    // If /proc/meminfo can't be read, the report lacks the host's memory.
    guard burst == nil, let memory = try? HostMemory.read() else { return }
    let workers = engine.workerIDs.reduce(ByteCount.zero) { sum, worker in
      engine.state(of: worker)?.isAlive == true ? sum + engine.footprint(of: worker) : sum
    }
    burst = findProcesses()
    burst?.host = JetsamRecord.Host(
      total: memory.total, free: memory.free, reclaimable: memory.reclaimable,
      wired: memory.wired, workers: workers.bytes, someStall: stall?.some, fullStall: stall?.full)
  }

  /// Writes the report of a burst that is over.
  func keep(_ report: JetsamReport, policy: LifecyclePolicy) {
    let now = DaemonLog.timestamp()
    let record = JetsamRecord(
      id: newID(at: now), time: now, policy: policy.name,
      level: report.level.name, why: CodedText("pressure", report.why), budget: report.budget.bytes,
      availableBefore: report.availableBefore.bytes, availableAfter: report.availableAfter.bytes,
      largest: report.largest?.name, workers: report.entries.map(JetsamRecord.Entry.init),
      host: burst?.host)
    save(record, burst)
    burst = nil
  }

  /// Writes a report with the largest processes as they are now.
  func saveWithProcesses(_ record: JetsamRecord) { save(record, findProcesses()) }

  private func findProcesses() -> Burst {
    let burst = Burst()
    measure? { [weak self] processes in
      burst.processes = processes
      guard let self, processes != nil, var record = burst.record else { return }
      record.largestProcesses = processes
      write(record)
    }
    return burst
  }

  /// Writes a report without waiting for the processes. It is written again when they are found.
  private func save(_ record: JetsamRecord, _ burst: Burst?) {
    var record = record
    record.largestProcesses = burst?.processes
    if burst?.processes == nil { burst?.record = record }
    ids = Array((ids + [record.id]).sorted(by: >).prefix(JetsamStore.maxKept))
    write(record, saying: "jetsam report \(record.id) written (`dormouse jetsam` shows it)")
  }

  /// The id of a report that begins at this time: the time without punctuation, and a number if one
  /// second has several.
  func newID(at time: String) -> String {
    let base = time.filter { $0.isNumber || $0 == "T" }
    let used = Set(ids)
    if !used.contains(base) { return base }
    return (2...).lazy.map { "\(base)-\($0)" }.first { !used.contains($0) } ?? base
  }

  private func write(_ record: JetsamRecord, saying text: String? = nil) {
    disk.submit { [log, store] in
      do {
        try store.save(record)
        if let text { log(.warning, text) }
      } catch { log(.error, "can't write the jetsam report \(record.id): \(error)") }
    }
  }
}

extension JetsamRecord.Entry {
  fileprivate init(_ entry: JetsamReport.Entry) {
    self.init(
      name: entry.worker.name, state: entry.state.rawValue, band: entry.band,
      footprint: entry.footprint.bytes, peakFootprint: entry.peakFootprint.bytes,
      secondsSinceUse: entry.sinceUse.seconds, secondsOfAge: entry.age.seconds,
      victimBecause: entry.victimBecause.map { CodedText("chosen_by_order", $0) },
      gaveBack: entry.gaveBack?.bytes)
    protection = entry.protection.map { CodedText($0) }
  }
}

/// The jetsam reports on disk. Each is a JSON file, and the newest `maxKept` are kept.
struct JetsamStore: Sendable {
  let directory: String
  static let maxKept = 100

  /// The ids of the reports, the newest first. Ids begin with the time, so they sort by age.
  func ids() -> [String] {
    let names = (try? listDirectory(directory)) ?? []
    return names.filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }.sorted(by: >)
  }

  func load(_ id: String) -> JetsamRecord? {
    // An id comes from a client. It must not name a file outside of this directory.
    guard !id.contains("/"), !id.hasPrefix("."),
      let bytes = try? readFile("\(directory)/\(id).json")
    else { return nil }
    // A damaged report counts as missing.
    return try? WireCodec.decode(JetsamRecord.self, from: bytes)
  }

  func save(_ record: JetsamRecord) throws {
    let bytes = try WireCodec.json(for: record) + [10]
    try StateFile.replace("\(directory)/\(record.id).json", with: bytes, durability: .none)
    for old in ids().dropFirst(Self.maxKept) { discardFile("\(directory)/\(old).json") }
  }
}
