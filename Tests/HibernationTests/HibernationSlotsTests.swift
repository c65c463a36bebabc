import Synchronization
import TestSupport
import Testing

@testable import Hibernation

@Suite("The order of hibernations") final class HibernationSlotsTests: Sendable {
  private let slots = HibernationSlots()
  private let begun = Mutex<[String]>([])

  @Test(
    "One that gives up its turn early lets the next begin, and its end lets no further one begin")
  func early() throws {
    let frozen = slots.acquire("frozen")
    frozen.end()
    // This returns at once.
    let next = slots.acquire("next")
    frozen.end()
    let last = try TestThread { [self] in
      let turn = slots.acquire("last")
      begun.withLock { $0.append("last") }
      turn.end()
    }
    begun.withLock { $0.append("end of next") }
    next.end()
    last.join()
    #expect(begun.withLock { $0 } == ["end of next", "last"])
    slots.acquire("another").end()
  }
}
