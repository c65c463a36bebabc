import Control
import Journal
import Lifecycle
import Linux
import Policy

// The uses of workers outlive the daemon, so that `explain` knows after a restart how often a
// worker is used. They are saved with the counts of the day, in `reports/uses`. The time between
// two daemons counts as time without use.

/// The content of the file. Times are in milliseconds before `savedAt`.
struct SavedUses: Codable, Hashable {
  struct Worker: Codable, Hashable {
    var since: Int64
    var count: Int
    var last: CodedText?
    /// The begin and the end of each use in turn, the oldest first.
    var uses: [Int64]
  }

  /// Milliseconds since 1970.
  var savedAt: Int64
  var workers: [String: Worker]

  static let title = "dormouse uses 1"
  /// The maximum number of workers in the file. `run` can create thousands: those that were used
  /// last are kept.
  static let maxWorkers = 1000

  init(_ history: UseHistory, at now: Instant, savedAt: Int64) {
    self.savedAt = savedAt
    func before(_ moment: Instant) -> Int64 { max(0, (now - moment).wholeNanoseconds / 1_000_000) }
    let order = history.all.sorted { left, right in
      (left.value.all.last?.ended ?? .zero, right.key) > (
        right.value.all.last?.ended ?? .zero, left.key
      )
    }
    let kept = order.prefix(Self.maxWorkers).map { worker, uses in
      let moments = uses.all.flatMap { [before($0.began), before($0.ended)] }
      return (
        worker.name,
        Worker(since: before(uses.since), count: uses.count, last: uses.last, uses: moments)
      )
    }
    workers = Dictionary(uniqueKeysWithValues: kept)
  }

  /// The history as of now.
  ///
  /// - Parameter time: the time of `now` in milliseconds since 1970.
  func history(at now: Instant, time: Int64) -> UseHistory {
    // If the clock was set back, nothing may have happened in the future.
    let away = min(max(time - savedAt, 0), 366 * 86_400_000)
    func moment(_ before: Int64) -> Instant {
      now + .milliseconds(-(max(0, min(before, 10 * 366 * 86_400_000)) + away))
    }
    var all: [WorkerID: UseHistory.Uses] = [:]
    for (name, saved) in workers.prefix(Self.maxWorkers) {
      let places = stride(from: 0, to: saved.uses.count - 1, by: 2)
      let uses = places.map {
        UseHistory.Use(began: moment(saved.uses[$0]), ended: moment(saved.uses[$0 + 1]))
      }
      all[WorkerID(name)] = UseHistory.Uses(
        since: moment(saved.since), all: uses.suffix(UseHistory.limit),
        count: max(saved.count, uses.count), last: saved.last)
    }
    return UseHistory(all: all)
  }
}

/// Keeps the uses of workers across restarts of the daemon. It belongs to the event loop's thread.
/// The file is written on the queue's thread.
final class UseKeeper {
  private(set) var history = UseHistory()
  private let path: String
  private let queue: WorkQueue
  private let wall: () -> WallTime
  private let log: DayKeeper.Log
  private var savedAt = Instant.zero

  init(
    directory: String, queue: WorkQueue, wall: @escaping () -> WallTime = JournalWriter.wall,
    log: @escaping DayKeeper.Log
  ) {
    path = "\(directory)/uses"
    self.queue = queue
    self.wall = wall
    self.log = log
  }

  /// Reads what an earlier daemon has saved.
  func begin(at now: Instant) {
    savedAt = now
    if isAbsent(path) { return }
    do throws(SystemCallError) {
      let bytes = try readFile(path)
      guard let saved = SealedFacts.decode(SavedUses.self, from: bytes, title: SavedUses.title)
      else { return log(.warning, "how often workers are used is lost: \(path) is damaged") }
      history = saved.history(at: now, time: milliseconds)
    } catch { log(.warning, "how often workers are used is lost: \(error)") }
  }

  func record(_ event: Event, at now: Instant) {
    history.record(event, at: now)
    guard case .memory = event, now - savedAt >= DayKeeper.saveEvery else { return }
    save(at: now)
  }

  /// Begins to write the history to the file.
  func save(at now: Instant) {
    savedAt = now
    let saved = SavedUses(history, at: now, savedAt: milliseconds)
    queue.submit { [path, log] in
      do {
        let text = try SealedFacts.encode(saved, title: SavedUses.title)
        try StateFile.replace(path, with: Array(text.utf8), durability: .none)
      } catch { log(.warning, "can't write how often workers are used: \(error)") }
    }
  }

  private var milliseconds: Int64 { wall().nanoseconds / 1_000_000 }
}
