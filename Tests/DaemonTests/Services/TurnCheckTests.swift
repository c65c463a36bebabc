import Glibc
import Linux
import TestSupport
import Testing

@testable import Daemon

@Suite("The check for a blocked event loop") struct TurnCheckTests {
  private static let limit = TurnCheck.Settings(limit: 20_000_000, aborts: false)

  @Test func `A turn that is blocked for too long is reported with its slow step`() throws {
    var check = try #require(TurnCheck(Self.limit))
    check.begin()
    let start = Clocks.monotonic
    usleep(60_000)
    check.beginStep()
    check.endStep(from: start) { "WorkerSleep.swift:7" }
    let end = check.end()
    let text = try #require(end)
    #expect(text.contains("WorkerSleep.swift:7"))
    #expect(text.hasPrefix(TurnCheck.defect) && text.contains("limit 20 ms"))
  }

  @Test func `A turn that ends within a handler is reported with that handler`() throws {
    var check = try #require(TurnCheck(Self.limit))
    check.begin()
    let start = Clocks.monotonic
    check.beginStep()
    usleep(60_000)
    let first = check.end()
    check.begin()
    #expect(first?.hasPrefix(TurnCheck.defect) == true, "also if the handler never returns")
    let text = check.endStep(from: start) { "ControlServer.swift:9" }
    let message = try #require(text)
    #expect(message.hasPrefix(TurnCheck.defect))
    #expect(message.hasSuffix("no single step; in ControlServer.swift:9"))
    check.beginStep()
    let other = check.endStep(from: start) { "ControlServer.swift:10" }
    #expect(other == nil, "it is reported once")
  }

  @Test func `A turn that waits for pages from a disk doesn't end the daemon`() throws {
    var check = try #require(TurnCheck(TurnCheck.Settings(limit: 20_000_000, aborts: true)))
    var template = Array("/var/tmp/dormouse-turn-XXXXXX".utf8CString)
    let file = Descriptor(owning: mkstemp(&template))
    unlink(template)
    try file.writeAll(String(repeating: "x", count: 1 << 16))
    fsync(file.raw)
    posix_fadvise(file.raw, 0, 0, POSIX_FADV_DONTNEED)
    let page = try #require(mmap(nil, 1 << 16, PROT_READ, MAP_SHARED, file.raw, 0))
    defer { munmap(page, 1 << 16) }
    check.begin()
    let before = Clocks.majorFaults
    let byte = page.load(as: UInt8.self)
    // On a tmpfs, no page is read from a disk.
    guard Clocks.majorFaults > before else {
      return notTestedHere("the temporary directory is in memory: no page is read from a disk")
    }
    usleep(60_000)
    let end = check.end()
    let text = try #require(end)
    #expect(byte == UInt8(ascii: "x") && text.contains("of its pages were read from a disk"))
    #expect(!text.hasPrefix(TurnCheck.defect))
  }

  @Test func `A short turn isn't reported, however long the loop waits between two turns`() throws {
    var check = try #require(TurnCheck(TurnCheck.Settings(limit: 2_000_000_000, aborts: false)))
    var messages: [String] = []
    for _ in 0..<2 {
      check.begin()
      if let message = check.end() { messages.append(message) }
      usleep(30_000)
      if let message = check.end() { messages.append(message) }
    }
    #expect(messages == [])
  }

  @Test func `A debug build checks turns with 2 s, unless the environment sets another limit`() {
    #expect(TurnCheck.Settings.current(nil) == TurnCheck.Settings(limit: 2_000_000_000))
    #expect(TurnCheck.Settings.current("off") == nil)
    #expect(TurnCheck.Settings.current("250ms") == TurnCheck.Settings(limit: 250_000_000))
    for (text, limit) in [("report", 2_000_000_000), ("report:100ms", 100_000_000)] {
      #expect(
        TurnCheck.Settings.current(text) == TurnCheck.Settings(limit: Int64(limit), aborts: false))
    }
    // A value that can't be read doesn't switch the check off.
    #expect(TurnCheck.Settings.current("soon") == TurnCheck.Settings(limit: 2_000_000_000))
  }
}
