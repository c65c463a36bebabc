import Synchronization
import Testing

@testable import Linux

@Suite struct WorkQueueTests {
  private final class Held: Sendable {}

  @Test func `what the lanes captured is released when they are done`() {
    for _ in 0..<500 {
      let sum = Mutex(0)
      weak var remembered: Held?
      do {
        let held = Held()
        remembered = held
        inParallel(count: 8, lanes: 4) { next in
          while let index = next() { withExtendedLifetime(held) { sum.withLock { $0 += index } } }
        }
      }
      #expect(remembered == nil)
      #expect(sum.withLock { $0 } == 28)
    }
  }
}
