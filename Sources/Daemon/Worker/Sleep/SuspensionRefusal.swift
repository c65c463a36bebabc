import Linux
import Policy

/// Why a suspension didn't succeed. The worker runs, except after `stillStopped`, and the text is
/// the reason for people.
enum SuspensionRefusal: Error, CustomStringConvertible {
  case frozenByManager(process: Int32)
  case managerAtWork(ProcessStat)
  /// A stop would end the call with a partial result.
  case inTheMiddle(thread: Int32)
  /// It isn't known what the worker waits for, so nothing would wake it.
  case stillMoving(thread: Int32)
  /// The worker is still working, such as on a request that it has read. Nothing would wake it to
  /// finish that.
  case atWork(thread: Int32)
  /// The worker is in use. Its memory leaves RAM by trims, if they are worth it.
  case worksByTimer(Duration)
  /// The worker's inputs can't be watched: it would miss requests while it sleeps. This is an error
  /// under `mode: activity`, or if descriptors are short.
  case unwatchable(SystemCallError)
  /// The worker was stopped, isn't to be suspended, and couldn't be woken.
  case stillStopped(reason: String, failure: String)

  var description: String {
    switch self {
    case .frozenByManager(let process):
      return "another program has frozen its cgroup (process \(process))"
    case .managerAtWork(let job):
      return "its manager started process \(job.pid) (\(job.name)) in its cgroup"
    case .inTheMiddle(let thread):
      return "its thread \(thread) is in the middle of a call that a stop would cut short (a "
        + "write, a receipt with MSG_WAITALL, a submission to io_uring)"
    case .stillMoving(let thread):
      let limit = SuspendJob.timeout.components.seconds
      return "its thread \(thread) did not come to rest within \(limit) s"
    case .atWork(let thread): return "not idle: its thread \(thread) is working"
    case .worksByTimer(let timer):
      return "it has no clients and works by its own timer (\(timer.text)); its policy trims such "
        + "workers and doesn't suspend them"
    case .unwatchable(let reason):
      let what = "can't watch its sockets while it sleeps (\(reason))"
      if reason.isShortage { return what }
      return what + ", and nothing else would wake it; run `dormouse doctor` to see what is missing"
    case .stillStopped(let reason, let failure):
      return "\(reason); and it could not be woken: \(failure)"
    }
  }
}
