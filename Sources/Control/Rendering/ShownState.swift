/// The state in one or a few words, as tables show it. The engine knows one state for a worker without
/// processes, `terminated`; people need to know why it has none.
public struct ShownState: Hashable, Sendable {
  /// `backing off 4 s`; escaped.
  public let text: String
  /// The same without what differs between two workers: `backing off`.
  public let kind: String
  let color: Color

  /// What `kind` says instead of `terminated`, the engine's word.
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

  /// Work of its own doesn't go on while it sleeps.
  static let stoppedWorkMark = "!"
  /// What the mark means, under a table.
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
  /// It sleeps, and nothing wakes it for work of its own.
  var hasStoppedWork: Bool { stoppedTimerSeconds != nil || stopsWriting == true }
}
