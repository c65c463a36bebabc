import Linux
import Synchronization

/// The end of the time in which the pager of a trimmed worker fills only the pages that the worker
/// needs: all pages are filled, or the worker is handed over to be trimmed again.
final class TrimEnd: Sendable {
  private enum State: Int, AtomicRepresentable { case serving, filling, wanted, accepted }

  let counter: EventCounter
  private let state = Atomic(State.serving)
  private let answered = Semaphore()
  private let standstill = Mutex<Standstill?>(nil)
  /// True while the pager has dropped the lists of the image, which it can read again.
  let listsAreDropped = Atomic(false)
  /// True while the pager uses the thread that waits for all pagers at rest.
  let isBrief = Atomic(false)
  /// A pager without buffers drops the lists after this further time, in ms.
  let listsDropAfter: Int32

  init(listsDropAfter: Int32) throws(SystemCallError) {
    self.listsDropAfter = listsDropAfter
    counter = try EventCounter()
  }

  /// Asks for all missing pages. Any thread may call it.
  func request() {
    state.store(.filling, ordering: .releasing)
    counter.signal()
  }

  /// Forgets the signals of requests that were withdrawn.
  func clearUnlessAsked() {
    if isRequested || wantsHandOver { return }
    counter.clear()
    if isRequested || wantsHandOver { counter.signal() }
  }

  var isRequested: Bool { state.load(ordering: .acquiring) == .filling }

  // MARK: hand over

  /// Asks the pager to freeze the worker and to end with its pages missing. Waits for the answer.
  ///
  /// - Parameter still: limits the time in which the pager freezes the worker.
  /// - Returns: true if the pager has ended or is about to; false if it serves the worker on.
  func requestHandOver(_ still: Standstill, within limit: Duration) -> Bool {
    while answered.wait(within: .zero) {}
    standstill.withLock { $0 = still }
    guard exchange(.serving, for: .wanted) else { return true }
    counter.signal()
    if answered.wait(within: limit) { return state.load(ordering: .acquiring) != .serving }
    // It may have refused at this moment.
    return !exchange(.wanted, for: .serving) && state.load(ordering: .acquiring) != .serving
  }

  /// When the pager gives up to freeze the worker.
  var freezeEnd: Deadline { (standstill.withLock { $0 } ?? Standstill(limit: nil)).end }

  var wantsHandOver: Bool { state.load(ordering: .acquiring) == .wanted }

  /// Ends the pager's work with the worker frozen. Returns false if that isn't wanted any more.
  func acceptHandOver() -> Bool { exchange(.wanted, for: .accepted) }

  /// The pager serves the worker on.
  func refuseHandOver() {
    _ = exchange(.wanted, for: .serving)
    answered.signal()
  }

  /// The pager has ended.
  func didEnd() {
    state.store(.accepted, ordering: .releasing)
    answered.signal()
  }

  private func exchange(_ old: State, for new: State) -> Bool {
    state.compareExchange(
      expected: old, desired: new, ordering: .acquiringAndReleasing
    ).exchanged
  }
}
