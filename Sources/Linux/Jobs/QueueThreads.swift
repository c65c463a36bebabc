import Synchronization

/// The threads of several queues that may leave them. A thread that is there already makes a job begin earlier, by half
/// a millisecond; each takes up to 28 KB.
public final class QueueThreads: Sendable {
  private let keeps: Int
  private let count = Atomic(0)

  /// - Parameter keeps: this number of threads stays. Those that become idle beyond it leave.
  public init(keeps: Int) {
    self.keeps = keeps
    // It can be started now, and perhaps not when a queue needs it.
    _ = QueueBacklog.spare
  }

  func enter() { count.add(1, ordering: .relaxed) }

  /// - Parameter always: also if there are few.
  /// - Returns: false: it stays.
  func leave(always: Bool) -> Bool {
    var seen = count.load(ordering: .relaxed)
    while always || seen > keeps {
      let (isMine, now) = count.weakCompareExchange(
        expected: seen, desired: seen - 1, ordering: .relaxed)
      if isMine { return true }
      seen = now
    }
    return false
  }
}
