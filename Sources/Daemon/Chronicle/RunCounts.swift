import Control
import Lifecycle
import Policy

/// Counts since the daemon's start what the journal's tallies lack: how long wakes took, and how
/// often workers were terminated for lack of memory. It belongs to the event loop's thread.
final class RunCounts {
  private let began: Instant
  /// The workers that are being woken, with the state that they slept in.
  private var waking: [WorkerID: WorkerState] = [:]
  private var fromSuspended = DurationHistogram()
  private var fromHibernated = DurationHistogram()
  private(set) var jetsamReports = 0

  init(began: Instant = EventLoop.now) { self.began = began }

  func record(_ event: Event, directives: [Directive]) {
    if case .resumed(let worker, let took) = event {
      switch waking[worker] {
      case .suspended: fromSuspended.add(took.seconds)
      case .hibernated: fromHibernated.add(took.seconds)
      default: break
      }
    }
    for directive in directives {
      switch directive {
      case .transition(let moved) where moved.to == .resuming: waking[moved.worker] = moved.from
      case .transition(let moved) where moved.from == .resuming: waking[moved.worker] = nil
      case .report: jetsamReports += 1
      default: break
      }
    }
  }

  func upSeconds(at now: Instant) -> Double { (now - began).seconds }

  var wakeTimes: [DaemonMeasurements.WakeTimes] {
    [fromSuspended.report("suspended"), fromHibernated.report("hibernated")]
  }
}

/// Counts durations by their length. The bounds are fixed, so that a program can add up the counts
/// of several daemons.
struct DurationHistogram {
  static let bounds = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
  ]
  private var counts = [Int](repeating: 0, count: bounds.count + 1)
  private var sum = 0.0

  mutating func add(_ seconds: Double) {
    let index = Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count
    counts[index] += 1
    sum += max(0, seconds)
  }

  func report(_ from: String) -> DaemonMeasurements.WakeTimes {
    DaemonMeasurements.WakeTimes(from: from, seconds: sum, bounds: Self.bounds, counts: counts)
  }
}
