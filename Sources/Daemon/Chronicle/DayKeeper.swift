import Control
import Journal
import Lifecycle
import Linux
import Policy
import Synchronization

/// Counts today's tallies, and saves them every ten minutes and on request. All files are read and
/// written on the queue's thread.
final class DayKeeper {
  typealias Log = @Sendable (DaemonLog.Priority, String) -> Void

  let store: DayStore
  private let queue: WorkQueue
  private let days: DayRecords
  private let clock: () -> WallTime
  private var ledger = Ledger()
  private var crashes = CrashLedger()
  /// What the ledger counted before it was last closed, for the workers that still exist.
  private var closed: [WorkerID: WorkerTally] = [:]
  private var today: Int
  private var savedAt = Instant.zero

  static let saveEvery = Duration.seconds(600)

  init(
    directory: String, queue: WorkQueue, wall: @escaping () -> WallTime = JournalWriter.wall,
    log: @escaping Log
  ) {
    store = DayStore(directory: directory)
    days = DayRecords(store, log)
    clock = wall
    self.queue = queue
    today = wall().day
  }

  func begin(_ engine: Engine, at now: Instant) {
    ledger.begin(engine, at: now)
    savedAt = now
    // A damaged file is reported at the start, and not ten minutes later.
    queue.submit { [days, today] in days.open(today) }
  }

  func record(_ event: Event, directives: [Directive], engine: Engine, at now: Instant) {
    ledger.record(event, directives: directives, engine: engine, at: now)
    crashes.record(event, directives: directives, at: clock)
    guard case .memory = event else { return }
    let day = clock().day
    if day != today {
      save(at: now)
      today = day
    } else if now - savedAt >= Self.saveEvery {
      save(at: now)
    }
  }

  /// Keeps the last lines of a run whose end is recorded next.
  func keep(lastLines: [String]?, of worker: WorkerID) { crashes.keep(lastLines, of: worker) }

  /// The savings of one worker, or of all together. Counts of earlier days are missing until their
  /// files have been read.
  func savings(of worker: WorkerID? = nil, at now: Instant) -> RecentSavingsReport {
    ledger.addElapsedTime(at: now)
    return days.savings(with: ledger.tallies, of: worker)
  }

  /// What happened to a worker since the daemon's start.
  func tally(of worker: WorkerID, at now: Instant) -> WorkerTally {
    ledger.addElapsedTime(worker, at: now)
    return (closed[worker] ?? WorkerTally()) + (ledger.tallies[worker] ?? WorkerTally())
  }

  /// Begins to write the counts to the file.
  func save(at now: Instant) {
    savedAt = now
    let counted = ledger.close(at: now)
    closed = closed.merging(counted, uniquingKeysWith: +).filter { ledger.has($0.key) }
    let ended = crashes.close()
    queue.submit { [days, today] in days.add(counted, ended, to: today) }
  }
}

/// The tallies of the last seven days, and of earlier days that couldn't be written. The files are
/// read and written on the queue's thread only, in order: if the clock was set back, a day's file
/// is read after it was written. The event loop reads `recent` at any time, and waits for no file.
private final class DayRecords: Sendable {
  private struct Recent: Sendable {
    var today = 0
    /// The tallies of the six days before.
    var earlier: [WorkerID: WorkerTally] = [:]
    var saved: [WorkerID: WorkerTally] = [:]
  }

  private let store: DayStore
  private let log: DayKeeper.Log
  private let records = Mutex<[Int: DayRecord]>([:])
  private let recent = Mutex(Recent())

  /// The maximum number of days that are kept while nothing can be written to the disk.
  private static let maxUnwritten = 7
  private static let recentDays = 7

  init(_ store: DayStore, _ log: @escaping DayKeeper.Log) {
    self.store = store
    self.log = log
  }

  /// Begins a day, also when the daemon starts.
  func open(_ day: Int) {
    records.withLock { records in
      guard records[day] == nil else { return }
      let record = load(day)
      records[day] = record
      let earlier = tallies(before: day)
      recent.withLock { $0 = Recent(today: day, earlier: earlier, saved: record.tallies) }
    }
  }

  /// The sum of the recent days before a day.
  private func tallies(before day: Int) -> [WorkerID: WorkerTally] {
    var sum: [WorkerID: WorkerTally] = [:]
    for each in (day - Self.recentDays + 1)..<day {
      // A day that can't be read isn't counted; `dormouse report` reports it.
      if let record = try? store.load(each) { sum.merge(record.tallies, uniquingKeysWith: +) }
    }
    return sum
  }

  func add(
    _ counted: [WorkerID: WorkerTally], _ crashes: [WorkerID: CrashGroups], to day: Int
  ) {
    open(day)
    records.withLock { records in
      records[day]?.add(counted, crashes: crashes)
      let tallies = records[day]?.tallies ?? [:]
      recent.withLock { if $0.today == day { $0.saved = tallies } }
      for (each, record) in records.sorted(by: { $0.key < $1.key }) {
        do {
          try store.save(record)
          if each != day { records[each] = nil }
        } catch { log(.error, "can't write the counts for `dormouse report`: \(error)") }
      }
      while records.count > Self.maxUnwritten, let oldest = records.keys.filter({ $0 != day }).min()
      {
        records[oldest] = nil
      }
    }
    store.trim()
  }

  private func load(_ day: Int) -> DayRecord {
    do {
      if let record = try store.load(day) { return record }
    } catch {
      log(.error, "can't read today's counts for `dormouse report`: \(error); they start from zero")
      store.setAside(day)
    }
    return DayRecord(day: day)
  }

  /// The savings of today and of the last seven days.
  ///
  /// - Parameters:
  ///   - unsaved: what has been counted since the last save.
  ///   - worker: nil for all workers together.
  func savings(with unsaved: [WorkerID: WorkerTally], of worker: WorkerID?) -> RecentSavingsReport {
    let (earlier, saved) = recent.withLock { ($0.earlier, $0.saved) }
    let today = Self.sum([saved, unsaved], of: worker)
    let week = today + Self.sum([earlier], of: worker)
    return RecentSavingsReport(today: SavingsReport(today), week: SavingsReport(week))
  }

  private static func sum(_ days: [[WorkerID: WorkerTally]], of worker: WorkerID?) -> WorkerTally {
    var sum = WorkerTally()
    for tallies in days {
      if let worker {
        if let tally = tallies[worker] { sum += tally }
      } else {
        for tally in tallies.values { sum += tally }
      }
    }
    return sum
  }
}

extension SavingsReport {
  init(_ tally: WorkerTally) {
    self.init(
      byteHours: tally.savedByteSeconds / 3600, asleepSeconds: tally.asleepSeconds,
      aliveSeconds: tally.aliveSeconds, resumes: tally.resumes,
      resumeP50: tally.resumeTimes.quantile(0.5), resumeP95: tally.resumeTimes.quantile(0.95))
  }
}
