import Synchronization
import Testing

@testable import Linux

@Suite struct WorkQueueTests {
  private final class Held: Sendable {}

  @Test func `Values that the lanes of a work queue captured are released when the lanes end`() {
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

  @Test("Urgent jobs come first, and none overtakes one about the same subject")
  func urgency() {
    let order = Mutex<[Int]>([])
    func job(_ number: Int) -> WorkQueue.Job { { order.withLock { $0.append(number) } } }
    let queue = WorkQueue(name: "test")
    let gate = Semaphore()
    queue.submit { gate.wait() }
    queue.submit(about: "a", job(1))
    queue.submit(about: "b", job(2))
    queue.submit(about: "c", job(3))
    queue.submit(about: "d", isUrgent: true, job(4))
    queue.submit(about: "c", isUrgent: true, job(5))
    queue.prioritize("b")
    queue.prioritize("unknown")
    queue.submit(job(6))
    gate.signal()
    queue.perform {}
    #expect(order.withLock { $0 } == [4, 3, 5, 2, 1, 6])
  }
}
