import Linux
import Synchronization

/// Limits the number of resumes that are under way at the same time, from their start to the
/// worker's first answer. If two hundred workers are woken within a second, concurrent resumes all
/// end when the last one does. One after the other, half of the clients have their answer in half
/// of that time, and few threads and buffers are in use.
final class ResumeTurns: Sendable {
  /// One resume's turn. It ends by `end`, with the last reference, or after `limit`.
  final class Turn: Sendable {
    private let turns: ResumeTurns
    private let number: UInt64

    fileprivate init(_ turns: ResumeTurns, _ number: UInt64) {
      (self.turns, self.number) = (turns, number)
    }

    deinit { end() }

    /// Ends the turn. Another call has no effect. It may be called on any thread.
    func end() { turns.end(number) }
  }

  private struct State {
    var next: UInt64 = 0
    /// When each turn began, by its number, in nanoseconds of the monotonic clock.
    var holders: [UInt64: Int64] = [:]
    /// The resumes that wait, in the order of their arrival.
    var waiting: [(number: UInt64, semaphore: Semaphore)] = []
  }

  private let state = Mutex(State())
  private let maxConcurrent: Int

  /// The limits of this process. There are two turns for each processor, because some resumes wait
  /// for their disk.
  static let shared = ResumeTurns(maxConcurrent: 2 * onlineProcessors)

  /// A turn that takes longer doesn't count any more: its disk may hang, or its worker may compute.
  /// It is 200 ms, in ns.
  static let limit: Int64 = 200_000_000
  /// A worker that hasn't waited for a page for this time needs the processors for itself. It is 10
  /// ms, in ns.
  static let quiet: Int64 = 10_000_000
  /// A resume that has waited for this time begins in any case.
  static let maxWait = Duration.seconds(5)

  init(maxConcurrent: Int) { self.maxConcurrent = maxConcurrent }

  /// Waits until the resume may begin. It isn't for the event loop.
  func acquire() -> Turn {
    let semaphore = Semaphore()
    let number = state.withLock { state in
      state.next += 1
      state.waiting.append((state.next, semaphore))
      grant(&state)
      return state.next
    }
    let deadline = Deadline(in: Self.maxWait)
    // Turns that have taken too long are noticed here only.
    while !semaphore.wait(within: .milliseconds(20)) {
      let isOver = state.withLock { state in
        grant(&state)
        if deadline.hasPassed { state.waiting.removeAll { $0.number == number } }
        return deadline.hasPassed
      }
      if isOver { break }
    }
    return Turn(self, number)
  }

  /// The number of resumes that are under way.
  /// The number of resumes that wait.
  var holderCount: Int { state.withLock { $0.holders.count } }
  var waitingCount: Int { state.withLock { $0.waiting.count } }

  private func grant(_ state: inout State) {
    let now = Clocks.monotonic
    state.holders = state.holders.filter { now - $0.value < Self.limit }
    while state.holders.count < maxConcurrent, !state.waiting.isEmpty {
      let next = state.waiting.removeFirst()
      state.holders[next.number] = now
      next.semaphore.signal()
    }
  }

  private func end(_ number: UInt64) {
    state.withLock { state in
      if state.holders.removeValue(forKey: number) != nil { grant(&state) }
    }
  }
}
