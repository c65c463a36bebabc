import Control
import Daemon
import Journal
import Lifecycle
import Policy

/// Past events, read from the journal's files.
struct History {
  var segments: [JournalSegment]
  var worker: String?
  /// The time of the first event to return.
  var since: WallTime?
  /// The last event to return, as an instant of a run: the daemon itself sends the later ones.
  var end: (run: String, at: Int64)?
  private(set) var problems: [JournalProblem] = []

  /// Returns the last `limit` events, or all events if `limit` is nil.
  mutating func events(limit: Int?) -> [EventRecord] {
    if let since {
      let events = events(from: JournalFiles.firstSegment(at: since, of: segments))
      return limit.map { Array(events.suffix($0)) } ?? events
    }
    guard let limit else { return events(from: 0) }
    if limit == 0 { return [] }
    // In most cases a few segments are enough.
    var count = 2
    while true {
      let events = events(from: max(0, segments.count - count))
      if events.count >= limit || count >= segments.count { return Array(events.suffix(limit)) }
      count *= 4
    }
  }

  private mutating func events(from first: Int) -> [EventRecord] {
    var player = JournalPlayer()
    var formatter = EventFormatter()
    var run = ""
    var events: [EventRecord] = []
    player.play(Array(segments[first...])) { step, engine in
      if case .began(let header, _) = step.kind { run = header.run }
      if let end, run == end.run, step.at.nanoseconds > end.at { return }
      // Earlier steps are processed as well, because a change may have begun before `since`.
      let notices = Self.notices(of: step, engine, &formatter)
      if let since, step.wall < since { return }
      for notice in notices where worker == nil || notice.worker?.name == worker {
        events.append(EventRecord(notice, wall: step.wall))
      }
    }
    problems = player.problems
    return events
  }

  private static func notices(
    of step: JournalStep, _ engine: Engine, _ formatter: inout EventFormatter
  ) -> [Notice] {
    switch step.kind {
    case .continued: return []
    case .policy(let policy): return [formatter.notice(ofPolicy: policy, at: step.at)]
    case .event(let event):
      return formatter.notices(of: event, step.directives, engine, at: step.at)
    case .began(let header, let beginning):
      formatter = EventFormatter()
      switch beginning {
      case .newRun where header.segment == 0:
        return [Notice(daemonStarted: header.version, policy: header.policy.name, at: step.at)]
      // The start of the journal isn't an event.
      case .first: return []
      case .newRun, .afterGap: return [Notice(gapAt: step.at)]
      }
    }
  }
}
