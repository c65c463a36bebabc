import Control
import Journal
import Lifecycle
import Synchronization

/// The tallies of the last seven days, for `ps` and `status`. The queue's thread reads them from
/// the files of the days and adds to them. The event loop reads them at any time, and waits for no
/// file.
final class RecentTallies: Sendable {
  private struct Days: Sendable {
    var today = 0
    /// The tallies of the six days before.
    var earlier: [WorkerID: WorkerTally] = [:]
    var saved: [WorkerID: WorkerTally] = [:]
  }

  private let days = Mutex(Days())

  static let count = 7

  /// Begins a day, also when the daemon starts.
  ///
  /// - Parameter earlier: the tallies of the six days before.
  func begin(
    _ day: Int, earlier: [WorkerID: WorkerTally], today: [WorkerID: WorkerTally]
  ) {
    days.withLock { $0 = Days(today: day, earlier: earlier, saved: today) }
  }

  /// Replaces the tallies of a day.
  func set(_ day: Int, _ tallies: [WorkerID: WorkerTally]) {
    days.withLock { if $0.today == day { $0.saved = tallies } }
  }

  /// The savings of today and of the last seven days.
  ///
  /// - Parameters:
  ///   - unsaved: what has been counted since the last save.
  ///   - worker: nil for all workers together.
  func report(with unsaved: [WorkerID: WorkerTally], of worker: WorkerID? = nil)
    -> RecentSavingsReport
  {
    let (earlier, saved) = days.withLock { ($0.earlier, $0.saved) }
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
