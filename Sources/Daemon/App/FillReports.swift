import Hibernation
import Lifecycle

/// Reports of lazy restores whose pages were still missing, on the hibernator's threads. Tests provide their own.
protocol FillSource {
  func onFillFailure(_ report: @escaping @Sendable (String, HibernationError) -> Void)
  func onFillEnd(_ report: @escaping @Sendable (String) -> Void)
}

extension HibernationService: FillSource {}

/// Outcomes of lazy restores whose pages are still missing, from the hibernator's threads.
enum FillReports {
  /// - Parameter measure: on the loop. The worker's memory differs from that at its wake even if it did
  ///   nothing.
  static func follow(
    _ source: some FillSource, loopReturn: LoopReturn, log: DaemonLog,
    measure: @escaping (WorkerID) -> Void
  ) {
    source.onFillFailure { name, error in
      if error.aftermath == .intact {
        return log(
          .error, "\(name): its missing pages can't be filled in yet: \(error); it waits for them")
      }
      log(.error, "\(name): terminated: its missing pages can't be restored: \(error)")
    }
    let hasEnded: @Sendable (String) -> Void = loopReturn.relay {
      measure(WorkerID($0))
    }
    source.onFillEnd(hasEnded)
  }
}
