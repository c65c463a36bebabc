import Linux
import Synchronization

/// Limits the number of background fills that use the processors at the same time. If many workers
/// are woken within a second, concurrent fills would delay the first answers of the workers that
/// are woken next. A worker whose fill waits still gets the pages that its threads wait for.
final class FillTurns: Sendable {
  private struct State {
    var answering = 0
    var filling = 0
  }

  private let state = Mutex(State())
  private let maxConcurrent: Int

  /// The limits of this process. Each fill decompresses on a second thread, so it is half of the
  /// processors.
  static let shared = FillTurns(maxConcurrent: max(1, onlineProcessors / 2))

  /// A fill that has waited for this time doesn't wait for first answers any more: some worker may
  /// always be waking.
  static let maxWaitForAnswers = Duration.seconds(5)
  /// A fill that has waited for this time doesn't wait for other fills either: one of them may hang
  /// on its disk.
  static let maxWait = Duration.seconds(15)

  /// - Parameter maxConcurrent: the number of fills that may use the processors at the same time.
  init(maxConcurrent: Int) { self.maxConcurrent = maxConcurrent }

  /// Runs `body` while a resumed worker's first answer is under way. New fills wait meanwhile.
  func whileAnswering<Failure: Error>(_ body: () throws(Failure) -> Void) throws(Failure) {
    state.withLock { $0.answering += 1 }
    defer { state.withLock { $0.answering -= 1 } }
    try body()
  }

  /// Returns true if the fill may begin. It must then call `leave` at its end.
  func enter(after waited: Duration) -> Bool {
    state.withLock { state in
      let isFree =
        state.filling < maxConcurrent && (state.answering == 0 || waited >= Self.maxWaitForAnswers)
      guard isFree || waited >= Self.maxWait else { return false }
      state.filling += 1
      return true
    }
  }

  func leave() { state.withLock { $0.filling -= 1 } }
}
