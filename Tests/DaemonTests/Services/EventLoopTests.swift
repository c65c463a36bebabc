import Linux
import Policy
import Testing

@testable import Daemon

@Suite("The event loop") struct EventLoopTests {
  private let loop: EventLoop
  private let heard = Heard()

  private final class Heard { var names: [String] = [] }

  init() throws { loop = try EventLoop(check: nil) }

  private func record(_ name: String) -> () -> Void { { [heard] in heard.names.append(name) } }

  /// One turn that doesn't wait.
  private func turn() throws { try loop.turn(until: EventLoop.now) }

  @Test func `Timers are called in the order of their times, then of their setting`() throws {
    let now = EventLoop.now
    for (name, offset) in [("c", 3), ("a", 1), ("b", 2), ("a2", 1), ("never", 3_600_000)] {
      loop.at(now + .milliseconds(offset), do: record(name))
    }
    try loop.turn { heard.names.count == 4 }
    #expect(heard.names == ["a", "a2", "b", "c"])
  }

  @Test func `Timers of both clocks are called, and can be cancelled`() throws {
    loop.after(.milliseconds(1), do: record("after"))
    loop.cancel(loop.after(.milliseconds(1), do: record("cancelled")))
    loop.at(EventLoop.now + .milliseconds(1), do: record("at"))
    try loop.turn { heard.names.count == 2 }
    #expect(heard.names.sorted() == ["after", "at"])
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
      heard.names.append("descriptor")
      counter.clear()
    }
    loop.after(.zero) { [loop, heard] in
      heard.names.append("first")
      counter.signal()
      loop.after(.zero) { heard.names.append("second") }
    }
    try turn()
    #expect(heard.names == ["first"])
    try turn()
    #expect(heard.names == ["first", "descriptor", "second"])
  }

  @Test func `A cancelled timer isn't called, also if it is due in the same turn`() throws {
    let now = EventLoop.now
    let last = loop.at(now, do: record("last"))
    loop.cancel(last)
    var later: LoopToken?
    loop.at(now) { [loop, heard] in
      heard.names.append("first")
      if let later { loop.cancel(later) }
    }
    later = loop.at(now, do: record("later"))
    try turn()
    try turn()
    #expect(heard.names == ["first"])
  }

  @Test func `A descriptor that an earlier handler of the turn dropped isn't reported`() throws {
    let counters = try (0..<2).map { _ in try EventCounter() }
    var tokens: [LoopToken] = []
    for (number, counter) in counters.enumerated() {
      let token = try loop.watch(counter.descriptor, .readable) { [loop, heard] _ in
        heard.names.append("one of them")
        loop.unwatch(counters[1 - number].descriptor, tokens[1 - number])
        counter.clear()
      }
      tokens.append(token)
    }
    for counter in counters { counter.signal() }
    try turn()
    try turn()
    #expect(heard.names == ["one of them"])
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
        heard.names.append(next.descriptor.raw == number ? "same number" : "another")
        _ = try? loop.watch(next.descriptor, .readable) { _ in heard.names.append("of the old one")
        }
      }
    }
    if let old {
      token = try loop.watch(old.descriptor, .readable) { [heard] _ in heard.names.append("old") }
      first.signal()
      old.signal()
    }
    try turn()
    try turn()
    #expect(!heard.names.contains("of the old one"))
    // The order of the two events isn't guaranteed.
    #expect(heard.names.filter { $0 != "old" }.count == 1)
  }

  @Test func `A descriptor whose interest is empty isn't reported meanwhile`() throws {
    let counter = try EventCounter()
    let token = try loop.watch(counter.descriptor, .readable) { [heard] _ in
      heard.names.append("readable")
      counter.clear()
    }
    try loop.change(counter.descriptor, token, to: [])
    counter.signal()
    try turn()
    #expect(heard.names.isEmpty)
    try loop.change(counter.descriptor, token, to: .readable)
    try turn()
    #expect(heard.names == ["readable"])
  }
}
