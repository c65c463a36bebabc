import Hibernation
import Lifecycle

/// What becomes of resumes whose pages are still missing, from the hibernator's threads.
enum FillReports {
  /// - Parameter measure: on the loop. Without any activity of the worker its memory is another than when it was
  ///   woken.
  static func follow(
    _ hibernation: HibernationService, loopReturn: LoopReturn, log: DaemonLog,
    measure: @escaping (WorkerID) -> Void
  ) {
    hibernation.onFillFailure { name, error in
      log(.error, "\(name): terminated: its missing pages can't be restored: \(error)")
    }
    let hasEnded: @Sendable (String) -> Void = loopReturn.relay {
      measure(WorkerID($0))
    }
    hibernation.onFillEnd(hasEnded)
  }
}
