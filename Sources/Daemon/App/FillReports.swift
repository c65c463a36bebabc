import Hibernation
import Lifecycle

/// Reports the outcomes of lazy restores, which fill in missing pages on the hibernator's threads.
enum FillReports {
  /// - Parameter measure: called on the loop when all pages of a worker are there. Its memory
  ///   differs from that at its wake even if it did nothing.
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
