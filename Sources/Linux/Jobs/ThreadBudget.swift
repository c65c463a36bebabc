import Synchronization

/// Counts the threads of several queues that may release them, and keeps a few. If a thread exists
/// already, a job begins half a millisecond earlier; each thread uses up to 28 KB.
public final class ThreadBudget: Sendable {
  private let minimum: Int
  private let count = Atomic(0)

  /// - Parameter minimum: the number of threads that stay. Threads that become idle beyond it end.
  public init(minimum: Int) {
    self.minimum = minimum
    // The spare thread can be started now. It may be impossible later, when a queue needs it.
    _ = QueueBacklog.spare
  }

  func enter() { count.add(1, ordering: .relaxed) }

  /// Removes the calling thread from the count.
  ///
  /// - Parameter always: true: even if there are only a few threads.
  /// - Returns: false if the thread is to stay.
  func leave(always: Bool) -> Bool {
    var seen = count.load(ordering: .relaxed)
    while always || seen > minimum {
      let (isMine, now) = count.weakCompareExchange(
        expected: seen, desired: seen - 1, ordering: .relaxed)
      if isMine { return true }
      seen = now
    }
    return false
  }
}
