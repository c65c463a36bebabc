import Journal
import Lifecycle
import Linux
import Policy

/// Keeps today's tallies, and saves them every ten minutes and on request.
final class DayKeeper {
  let store: DayStore
  private let log: DaemonLog
  private let queue: WorkQueue
  private var ledger = Ledger()
  private var today: DayRecord
  private var savedAt = Instant.zero

  static let saveEvery = Duration.seconds(600)

  init(directory: String, queue: WorkQueue, log: DaemonLog) {
    store = DayStore(directory: directory)
    self.log = log
    self.queue = queue
    today = DayRecord(day: JournalWriter.wall().day)
    load()
  }

  private func load() {
    do {
      if let record = try store.load(today.day) { today = record }
    } catch {
      log(.error, "can't read today's counts for `dormouse report`: \(error); they start from zero")
      store.setAside(today.day)
    }
  }

  func begin(_ engine: Engine, at now: Instant) {
    ledger.begin(engine, at: now)
    savedAt = now
  }

  func record(_ event: Event, directives: [Directive], engine: Engine, at now: Instant) {
    ledger.record(event, directives: directives, engine: engine, at: now)
    guard case .memory = event else { return }
    let day = JournalWriter.wall().day
    if day != today.day {
      save(at: now)
      today = DayRecord(day: day)
      // A clock that was set back may find the day begun.
      load()
    } else if now - savedAt >= Self.saveEvery {
      save(at: now)
    }
  }

  func save(at now: Instant, then done: @escaping @Sendable () -> Void = {}) {
    savedAt = now
    today.add(ledger.close(at: now))
    queue.submit { [store, today, log] in
      do {
        try store.save(today)
      } catch { log(.error, "can't write the counts for `dormouse report`: \(error)") }
      store.trim()
      done()
    }
  }

  func close(at now: Instant) {
    save(at: now)
    queue.perform {}
  }
}
