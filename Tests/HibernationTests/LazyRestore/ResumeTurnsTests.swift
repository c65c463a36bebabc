import Linux
import Synchronization
import Testing

@testable import Hibernation

@Suite("Turns of resumes") struct ResumeTurnsTests {
  @Test("No more resumes than permitted are under way; others follow as they have come")
  func order() async throws {
    let turns = ResumeTurns(maxConcurrent: 1)
    let first = turns.acquire()
    let order = Mutex<[Int]>([])
    let ended = Semaphore()
    for number in 0..<3 {
      let began = Semaphore()
      try #require(
        Thread.start(name: "resume") {
          began.signal()
          let turn = turns.acquire()
          order.withLock { $0.append(number) }
          turn.end()
          ended.signal()
        })
      began.wait()
      // The turn has to wait in the queue before the next one arrives.
      let deadline = Deadline(in: .seconds(60))
      #expect(waitUntil(deadline) { turns.waitingCount > number || !order.withLock(\.isEmpty) })
    }
    first.end()
    for _ in 0..<3 { #expect(ended.wait(within: .seconds(60))) }
    #expect(order.withLock { $0 } == [0, 1, 2])
  }

  @Test func `A turn ends once, and a turn to which nothing refers any more is over`() {
    let turns = ResumeTurns(maxConcurrent: 1)
    let first = turns.acquire()
    first.end()
    first.end()
    do { _ = turns.acquire() }
    let third = turns.acquire()
    #expect(turns.holderCount == 1)
    third.end()
    #expect(turns.holderCount == 0)
  }

  @Test func `A resume doesn't wait for another one that hangs`() {
    let turns = ResumeTurns(maxConcurrent: 1)
    let hanging = turns.acquire()
    let began = Clocks.monotonic
    let next = turns.acquire()
    let waited = Clocks.monotonic - began
    #expect(waited >= ResumeTurns.limit / 2 && waited < 60_000_000_000)
    hanging.end()
    #expect(turns.holderCount == 1, "the late end of the first one isn't that of the second")
    next.end()
  }
}
