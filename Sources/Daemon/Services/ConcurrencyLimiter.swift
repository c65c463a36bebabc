/// Limits how many inspections run at once, so that a few threads serve a thousand workers. An
/// inspection that takes longer than the timeout no longer counts, so that one that hangs delays no
/// other. Belongs to the loop's thread.
final class ConcurrencyLimiter {
  /// Starts an inspection, which calls `done` when it has ended.
  typealias Start = (_ done: @escaping () -> Void) -> Void

  private let loop: EventLoop
  private let width: Int
  private let timeout: Duration
  private var waiting: [Start] = []
  private var slots: Set<UInt64> = []
  private var count: UInt64 = 0

  init(_ loop: EventLoop, width: Int = 4, timeout: Duration = .milliseconds(200)) {
    self.loop = loop
    self.width = width
    self.timeout = timeout
  }

  func enter(_ start: @escaping Start) {
    waiting.append(start)
    advance()
  }

  private func advance() {
    while slots.count < width, !waiting.isEmpty {
      let start = waiting.removeFirst()
      count += 1
      let slot = count
      slots.insert(slot)
      let timer = loop.after(timeout) { [unowned self] in leave(slot) }
      start { [unowned self, loop] in
        loop.cancel(timer)
        leave(slot)
      }
    }
  }

  private func leave(_ slot: UInt64) {
    if slots.remove(slot) != nil { advance() }
  }
}
