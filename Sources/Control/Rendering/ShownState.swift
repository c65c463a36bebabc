/// A worker's state in one or a few words, as tables show it. For a worker without processes the
/// engine has one state, `terminated`. This text also says why it has no process.
public struct ShownState: Hashable, Sendable {
  /// The text, escaped, such as `backing off 4 s`.
  public let text: String
  /// The text without details of one worker, such as `backing off`.
  public let kind: String
  let color: Color

  /// The values of `kind` for a worker that the engine calls `terminated`.
  public static let kindsOfEnded = [
    "never started", "not started", "gave up", "waiting", "backing off", "exited", "failed",
    "killed", "ended",
    "stopped",
  ]

  public init(of worker: WorkerReport) {
    let (kind, detail, color) = Self.parts(of: worker)
    self.kind = escaped(kind)
    text = escaped(([kind] + (detail.map { [$0] } ?? [])).joined(separator: " "))
    self.color = color
  }

  /// Marks a worker whose own work is stopped while it sleeps.
  static let stoppedWorkMark = "!"
  /// The explanation of the mark, below a table.
  static let stoppedWorkLegend =
    "!: work of its own is stopped while it sleeps; `dormouse explain NAME` says what helps"

  private static func parts(of worker: WorkerReport) -> (String, String?, Color) {
    guard worker.state == "terminated" else {
      return (worker.state, worker.hasStoppedWork ? stoppedWorkMark : nil, .ofState(worker.state))
    }
    switch worker.reason.code {
    case "never_started": return ("never started", nil, .dim)
    case "gave_up": return ("gave up", nil, .red)
    case "not_started": return ("not started", nil, .red)
    case "backing_off":
      let seconds = worker.restartsInSeconds.map { durationText($0.rounded(.up)) }
      return ("backing off", seconds, .yellow)
    case "waits_for_memory": return ("waiting", "for memory", .yellow)
    case "waits_for_worker":
      let awaited = worker.waitsFor.map { "for \($0.joined(separator: ", "))" }
      return ("waiting", awaited, .yellow)
    case "exited": return end(worker.lastExit)
    case "signaled", "out_of_memory", "end_unknown": return end(worker.lastExit)
    case "attempt_failed": return ("failed", nil, .red)
    case "watchdog": return ("failed", "watchdog", .red)
    case "pressure": return ("terminated", nil, .yellow)
    case let code where code.hasPrefix("requested_"): return ("stopped", nil, .dim)
    default: return (worker.state, nil, .dim)
    }
  }

  private static func end(_ exit: ExitStatusReport?) -> (String, String?, Color) {
    switch exit?.code {
    case "exited" where exit?.status == 0: ("exited", "0", .dim)
    case "exited": ("failed", exit?.status.map { "\($0)" }, .red)
    case "signaled": ("killed", exit?.signal.map { "by signal \($0)" }, .red)
    case "out_of_memory": ("killed", "out of memory", .red)
    default: ("ended", nil, .dim)
    }
  }
}

extension WorkerReport {
  /// True if it sleeps, and nothing wakes it for its own work.
  var hasStoppedWork: Bool { stoppedTimerSeconds != nil || stopsWriting == true }
}
