import Hibernation
import Lifecycle

/// Reports the outcomes of lazy restores and of trims, whose missing pages come back on the
/// hibernator's threads.
enum FillReports {
  /// - Parameters:
  ///   - measure: called on the loop when all pages of a worker are there. Its memory differs from
  ///     that at its wake even if it did nothing.
  ///   - lose: called on the loop when all memory of a trimmed worker came back although nothing
  ///     asked for it, with the reason as a clause.
  static func follow(
    _ hibernation: HibernationService, loopReturn: LoopReturn, log: DaemonLog,
    measure: @escaping (WorkerID) -> Void, lose: @escaping (WorkerID, String) -> Void
  ) {
    hibernation.onFillFailure { name, error in
      if error.aftermath == .intact {
        return log(
          .error, "\(name): its missing pages can't be filled in yet: \(error); it waits for them")
      }
      log(.error, "\(name): terminated: its missing pages can't be restored: \(error)")
    }
    hibernation.onFillEnd(loopReturn.relay { measure(WorkerID($0)) })
    let isLost: @Sendable ((name: String, reason: String)) -> Void = loopReturn.relay {
      lose(WorkerID($0.name), $0.reason)
    }
    hibernation.onTrimLoss { isLost(($0, $1)) }
  }
}
