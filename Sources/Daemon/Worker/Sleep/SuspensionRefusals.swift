import Linux
import Policy

// Why a suspension didn't succeed. The worker runs, and the text is the reason for people.

extension SuspendJob {
  struct ManagerHasFrozenIt: Error, CustomStringConvertible {
    let process: Int32
    var description: String { "another program has frozen its cgroup (process \(process))" }
  }

  struct ManagerIsAtWork: Error, CustomStringConvertible {
    let job: ProcessStat
    var description: String {
      "its manager started process \(job.pid) (\(job.name)) in its cgroup"
    }
  }

  /// A stop would end the call with a partial result.
  struct InTheMiddle: Error, CustomStringConvertible {
    let thread: Int32
    var description: String {
      "its thread \(thread) is in the middle of a call that a stop would cut short (a write, a "
        + "receipt with MSG_WAITALL, a submission to io_uring)"
    }
  }

  /// It isn't known what the worker waits for, so nothing would wake it.
  struct NotAtRest: Error, CustomStringConvertible {
    let thread: Int32
    var description: String {
      "its thread \(thread) did not come to rest within \(timeout.components.seconds) s"
    }
  }

  /// The worker is still working, such as on a request that it has read. Nothing would wake it to
  /// finish that.
  struct AtWork: Error, CustomStringConvertible {
    let thread: Int32
    var description: String { "not idle: its thread \(thread) is working" }
  }

  /// The worker is in use. Its memory leaves RAM by trims, if they are worth it.
  struct WorksByTimer: Error, CustomStringConvertible {
    let timer: Duration
    var description: String {
      "it has no clients and works by its own timer (\(timer.text)); its policy trims such workers "
        + "and doesn't suspend them"
    }
  }

  /// The worker's inputs can't be watched: it would miss requests while it sleeps. This is an error
  /// under `mode: activity`, or if descriptors are short.
  struct Unwatchable: Error, CustomStringConvertible {
    let reason: SystemCallError
    var description: String {
      let what = "can't watch its sockets while it sleeps (\(reason))"
      if reason.isShortage { return what }
      return what + ", and nothing else would wake it; run `dormouse doctor` to see what is missing"
    }
  }
}
