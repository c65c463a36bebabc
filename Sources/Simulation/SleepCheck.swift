import Lifecycle
import Policy

/// Checks that deadlines are postponed by the time for which the machine slept, because no worker
/// can meet a deadline then.
struct SleepCheck: Sendable {
  /// The time that is left, by worker and by what it waits for.
  private var left: [String: Duration] = [:]

  /// The codes of moves and obstacles that end at a deadline which the worker or the daemon has to
  /// meet.
  private static let codes: Set = [
    "launch_deadline", "watchdog", "kill", "inspection", "background_task", "held",
  ]

  /// - Parameter now: when the machine fell asleep.
  init(_ engine: Engine, at now: Instant) { left = Self.times(engine, at: now) }

  /// Returns a complaint, or `nil`.
  ///
  /// - Parameter now: when the machine is awake again.
  func check(_ engine: Engine, at now: Instant) -> String? {
    let after = Self.times(engine, at: now)
    // A decision right after the sleep may end a wait.
    let moved = left.first { wait in after[wait.key].map { $0 != wait.value } ?? false }
    return moved.map {
      "\($0.key): \($0.value.text) were left when the machine fell asleep, and "
        + "\(after[$0.key]?.text ?? "nothing") after that"
    }
  }

  private static func times(_ engine: Engine, at now: Instant) -> [String: Duration] {
    var times: [String: Duration] = [:]
    for worker in engine.workerIDs {
      guard let explanation = engine.explanation(of: worker, at: now) else { continue }
      let waits =
        explanation.moves.map { ($0.code, $0.after) }
        + explanation.obstacles.map { ($0.code, $0.clearsIn) }
      for (code, time) in waits where codes.contains(code) {
        times["\(worker), \(explanation.state), \(code)"] = time
      }
    }
    return times
  }
}
