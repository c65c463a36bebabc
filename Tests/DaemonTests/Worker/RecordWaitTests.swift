import Linux
import TestSupport
import Testing

@testable import Daemon

@Suite("The wait for a worker's record") struct RecordWaitTests {
  @Test("The wait ends when the disk has the record, and on a thread that began it earlier")
  func recorded() throws {
    let wait = RecordWait(timeout: .seconds(60))
    #expect(wait.obstacle(waits: false) == nil, "not known yet")
    let thread = try TestThread { #expect(wait.obstacle(waits: true) == nil) }
    wait.answer(true)
    thread.join()
    #expect(wait.obstacle(waits: true) == nil)
  }

  @Test func `A record that couldn't be written is an obstacle`() {
    let wait = RecordWait()
    wait.answer(false)
    for waits in [false, true] {
      #expect(wait.obstacle(waits: waits)?.hasPrefix("its record can't be written: ") == true)
    }
  }

  @Test func `A record that isn't on the disk in time is an obstacle`() {
    let began = Clocks.monotonic
    let wait = RecordWait(timeout: .milliseconds(20))
    for waits in [true, false] {
      let obstacle = wait.obstacle(waits: waits)
      #expect(obstacle?.hasPrefix("its record isn't on the disk after 20 ms: ") == true)
    }
    #expect(Clocks.monotonic - began >= 20_000_000)
  }
}
