import Policy
import Supervision

/// A worker's own work that stops while it sleeps, and that nothing wakes it for.
enum StoppedWork: Hashable, Sendable {
  /// The worker's own timer. It has no clients.
  case timer(StoppedTimer)
  /// The worker wrote regularly until it was suspended.
  case writing

  var code: String {
    switch self {
    case .timer: "own_timer_stopped"
    case .writing: "writing_stopped"
    }
  }

  /// The text for the log, and the first sentence of `explain`.
  var sentence: String {
    switch self {
    case .timer(let timer):
      "its own timer (\(timer.repeats ? "every" : "due in") \(timer.interval.text)) doesn't run "
        + "while it sleeps, and it has no clients: it does nothing until it is woken; "
        + "`background: { wake_for_timers: \(max(1, timer.interval.components.seconds))s }` "
        + "wakes it for the timer, and `background: { suspend_after: never }` keeps it awake"
    case .writing:
      "it wrote regularly until it was put to sleep, and writes nothing until it is woken; "
        + "`background: { suspend_after: never }` keeps it awake"
    }
  }
}
