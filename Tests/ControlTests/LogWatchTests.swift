import Glibc
import Linux
import TestSupport
import Testing

@testable import Control

@Suite("The wait for changes of logs") struct LogWatchTests {
  @Test func `While more can be read, only the other descriptors are checked`() throws {
    let scratch = try Scratch()
    let log = scratch.uniquePath("log")
    close(open(log, O_RDWR | O_CREAT, 0o600))
    let (reading, writing) = try unblockedPipe()
    var watch = LogWatch()
    // The first call begins the watch.
    #expect(watch.wait(for: [log], or: [reading.raw]) == .changed)
    let began = ContinuousClock.now
    for _ in 0..<100 {
      #expect(watch.wait(for: [log], or: [reading.raw], waits: false) == .changed)
    }
    // A hundred waits would take 100 s.
    #expect(ContinuousClock.now - began < .seconds(50))
    try writing.writeAll("x")
    #expect(watch.wait(for: [log], or: [reading.raw], waits: false) == .other)
  }
}
