import Linux
import Synchronization

/// Which background fills may use the processors now. When many workers are woken within a second, their fills side by
/// side would delay the first answers of those that are woken next. A worker whose fill waits gets the pages that its
/// threads wait for all the same.
final class FillTurns: Sendable {
  private struct State {
    var answering = 0
    var filling = 0
  }

  private let state = Mutex(State())
  private let most: Int

  /// Each fill decompresses on a second thread.
  static let shared = FillTurns(most: max(1, onlineProcessors / 2))

  /// A fill that has waited for this long doesn't wait for first answers any more: some worker may always be waking.
  static let patienceForAnswers = Duration.seconds(5)
  /// And after this, not for other fills: one of them may hang on its disk.
  static let patience = Duration.seconds(15)

  /// - Parameter most: fills that may use the processors at the same time.
  init(most: Int) { self.most = most }

  /// While a resumed worker's first answer is under way.
  func whileAnswering<Failure: Error>(_ body: () throws(Failure) -> Void) throws(Failure) {
    state.withLock { $0.answering += 1 }
    defer { state.withLock { $0.answering -= 1 } }
    try body()
  }

  /// True: the fill may begin, and ends with `leave`.
  func enter(after waited: Duration) -> Bool {
    state.withLock { state in
      let isFree =
        state.filling < most && (state.answering == 0 || waited >= Self.patienceForAnswers)
      guard isFree || waited >= Self.patience else { return false }
      state.filling += 1
      return true
    }
  }

  func leave() { state.withLock { $0.filling -= 1 } }
}
