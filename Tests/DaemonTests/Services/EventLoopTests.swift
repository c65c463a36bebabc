import Glibc
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon

@Suite("The event loop") struct EventLoopTests {
  private let loop: EventLoop
  private let heard = Recorded<String>()

  init() throws { loop = try EventLoop(check: nil) }

  private func record(_ name: String) -> () -> Void { { [heard] in heard.all.append(name) } }

  /// One turn that doesn't wait.
  private func turn() throws { try loop.turn(until: EventLoop.now) }

  @Test func `Timers are called in the order of their times, then of their setting`() throws {
    let now = EventLoop.now
    for (name, offset) in [("c", 3), ("a", 1), ("b", 2), ("a2", 1), ("never", 3_600_000)] {
      loop.at(now + .milliseconds(offset), do: record(name))
    }
    try loop.turn { heard.all.count == 4 }
    #expect(heard.all == ["a", "a2", "b", "c"])
  }

  @Test func `Timers of both clocks are called, and can be cancelled`() throws {
    loop.after(.milliseconds(1), do: record("after"))
    loop.cancel(loop.after(.milliseconds(1), do: record("cancelled")))
    loop.at(EventLoop.now + .milliseconds(1), do: record("at"))
    try loop.turn { heard.all.count == 2 }
    #expect(heard.all.sorted() == ["after", "at"])
  }

  @Test func `A time of the clock that stops isn't due because the other clock has passed it`() {
    var list = TimerList<AwakeInstant>()
    let start = AwakeInstant(nanoseconds: 5_000_000_000)
    let label = TurnCheck.Label(file: #fileID, line: #line)
    for (id, seconds) in [(1, 3), (2, 1), (3, 1)] as [(UInt64, Int)] {
      list.add(.init(at: start + .seconds(seconds), id: id, label: label, action: record("\(id)")))
    }
    #expect(list.popDue(at: start, upTo: 9) == nil)
    #expect(list.popDue(at: start + .seconds(1), upTo: 9)?.id == 2)
    // The second timer was set after the turn had begun.
    #expect(list.popDue(at: start + .seconds(9), upTo: 2)?.id == 1)
    #expect(list.first == start + .seconds(1))
    list.cancel(3)
    #expect(list.first == nil)
  }

  @Test func `A timer that is due again at once waits until after the descriptors`() throws {
    let counter = try EventCounter()
    try loop.watch(counter.descriptor, .readable) { [heard] _ in
      heard.all.append("descriptor")
      counter.clear()
    }
    loop.after(.zero) { [loop, heard] in
      heard.all.append("first")
      counter.signal()
      loop.after(.zero) { heard.all.append("second") }
    }
    try turn()
    #expect(heard.all == ["first"])
    try turn()
    #expect(heard.all == ["first", "descriptor", "second"])
  }

  @Test func `A cancelled timer isn't called, also if it is due in the same turn`() throws {
    let now = EventLoop.now
    loop.cancel(loop.at(now, do: record("last")))
    var later: LoopToken?
    loop.at(now) { [loop, heard] in
      heard.all.append("first")
      if let later { loop.cancel(later) }
    }
    later = loop.at(now, do: record("later"))
    try turn()
    try turn()
    #expect(heard.all == ["first"])
  }

  @Test func `A descriptor that an earlier handler of the turn dropped isn't reported`() throws {
    let counters = try (0..<2).map { _ in try EventCounter() }
    var tokens: [LoopToken] = []
    for (number, counter) in counters.enumerated() {
      let token = try loop.watch(counter.descriptor, .readable) { [loop, heard] _ in
        heard.all.append("one of them")
        loop.unwatch(counters[1 - number].descriptor, tokens[1 - number])
        counter.clear()
      }
      tokens.append(token)
    }
    for counter in counters { counter.signal() }
    try turn()
    try turn()
    #expect(heard.all == ["one of them"])
  }

  @Test func `A new descriptor with the number of a closed one gets none of its events`() throws {
    let first = try EventCounter()
    var old: EventCounter? = try EventCounter()
    let number = try #require(old?.descriptor.raw)
    var held: [EventCounter] = []
    var token: LoopToken?
    try loop.watch(first.descriptor, .readable) { [loop, heard] _ in
      first.clear()
      guard let counter = old, let oldToken = token else { return }
      loop.unwatch(counter.descriptor, oldToken)
      old = nil
      // A parallel test may get the number: then there is nothing to check.
      if let next = try? EventCounter() {
        held.append(next)
        heard.all.append(next.descriptor.raw == number ? "same number" : "another")
        _ = try? loop.watch(next.descriptor, .readable) { _ in heard.all.append("of the old one")
        }
      }
    }
    if let old {
      token = try loop.watch(old.descriptor, .readable) { [heard] _ in heard.all.append("old") }
      first.signal()
      old.signal()
    }
    try turn()
    try turn()
    #expect(!heard.all.contains("of the old one"))
    // The order of the two events isn't guaranteed.
    #expect(heard.all.filter { $0 != "old" }.count == 1)
  }

  @Test func `A descriptor whose interest is empty isn't reported meanwhile`() throws {
    let counter = try EventCounter()
    let token = try loop.watch(counter.descriptor, .readable) { [heard] _ in
      heard.all.append("readable")
      counter.clear()
    }
    try loop.change(counter.descriptor, token, to: [])
    counter.signal()
    try turn()
    #expect(heard.all.isEmpty)
    try loop.change(counter.descriptor, token, to: .readable)
    try turn()
    #expect(heard.all == ["readable"])
  }
}

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
