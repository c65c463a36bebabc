/// The lines that `dormouse up` prints between the workers' output. There is one when a worker is
/// suspended, hibernated or woken, or has ended without a request. A worker that does this often
/// gets a few lines, and then none for a while.
public struct SleepLines: Sendable {
  private struct Recent {
    var since: Double
    var count: Int
  }

  private var recent: [String: Recent] = [:]

  /// The maximum number of lines about one worker within `window` seconds.
  static let maxLines = 6
  static let window = 600.0

  public init() {}

  /// A line such as `web hibernated, freed 19.8 MB: suspended for 2 m; …`, or nil if the event
  /// needs no line.
  ///
  /// - Parameter seconds: the time of a monotonic clock.
  public mutating func line(for event: EventRecord, at seconds: Double) -> String? {
    guard let worker = event.worker, let what = Self.text(of: event) else { return nil }
    var last = recent[worker] ?? Recent(since: seconds, count: 0)
    if seconds - last.since >= Self.window { last = Recent(since: seconds, count: 0) }
    last.count += 1
    recent[worker] = last
    let name = escaped(worker)
    if last.count <= Self.maxLines { return "\(name) \(what)" }
    guard last.count == Self.maxLines + 1 else { return nil }
    let left = durationText((last.since + Self.window - seconds).rounded(.up))
    return "\(name) changes its state often: no more lines about it for \(left); "
      + "`dormouse events -f --worker \(name)` shows all"
  }

  private static func text(of event: EventRecord) -> String? {
    guard event.kind == "state", let from = event.from, let to = event.to else { return nil }
    let runs: Set = ["foreground", "background"]
    let sleeps: Set = ["suspended", "hibernated"]
    let reason = escaped(event.text)
    // A heartbeat isn't a use, and only lasts for seconds.
    if event.code == "heartbeat" { return nil }
    switch to {
    case "hibernated":
      let freed = event.freed.flatMap { $0 > 0 ? ", freed \(sizeText($0))" : nil } ?? ""
      return "hibernated\(freed): \(reason)"
    case "suspended" where runs.contains(from): return "suspended: \(reason)"
    case _ where runs.contains(to) && sleeps.contains(from): return "awake: \(reason)"
    case "terminated" where from != to && !Self.isWanted(event.code):
      return from == "launching" ? "doesn't run: \(reason)" : "ended: \(reason)"
    default: return nil
    }
  }

  private static func isWanted(_ code: String?) -> Bool {
    code?.hasPrefix("requested_") == true || code == "released"
  }
}

extension WorkerReport {
  /// True if it isn't running, and the reason is neither a request nor an orderly end.
  var hasFailed: Bool {
    guard state == "terminated" else { return false }
    switch reason.code {
    case "attempt_failed", "backing_off", "end_unknown", "gave_up", "not_started", "out_of_memory",
      "signaled", "watchdog":
      return true
    case "exited": return lastExit?.status != 0
    default: return false
    }
  }
}

/// A text such as `web doesn't run: attempt failed: …`, or nil if the worker runs or hasn't failed.
public func failureText(of worker: WorkerReport) -> String? {
  if !worker.hasFailed { return nil }
  return "\(escaped(worker.name)) doesn't run: \(escaped(worker.reason.text))"
}
