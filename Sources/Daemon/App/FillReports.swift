import Hibernation
import Lifecycle

/// Outcomes of lazy restores whose pages are still missing, from the hibernator's threads.
enum FillReports {
  /// - Parameter measure: on the loop. The worker's memory differs from that at its wake even if it did
  ///   nothing.
  static func follow(
    _ hibernation: HibernationService, loopReturn: LoopReturn, log: DaemonLog,
    measure: @escaping (WorkerID) -> Void
  ) {
    hibernation.onFillFailure { name, error in
      if error.aftermath == .intact {
        return log(
          .error, "\(name): its missing pages can't be filled in yet: \(error); it waits for them")
      }
      log(.error, "\(name): terminated: its missing pages can't be restored: \(error)")
    }
    let hasEnded: @Sendable (String) -> Void = loopReturn.relay {
      measure(WorkerID($0))
    }
    hibernation.onFillEnd(hasEnded)
  }
}
