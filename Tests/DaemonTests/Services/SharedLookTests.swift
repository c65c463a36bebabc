import Glibc
import Linux
import TestSupport
import Policy
import Synchronization
import Testing

@testable import Daemon

@Suite("A look at what may not answer") struct SharedLookTests {
  /// Turns the loop until `isDone` returns true, for a minute at most.
  private func turn(_ loop: EventLoop, until isDone: () -> Bool) throws {
    let end = EventLoop.now + .seconds(60)
    while !isDone(), EventLoop.now < end { try loop.turn(until: end) }
  }

  @Test("Calls during a look share the next one, and no look begins beside another")
  func shared() throws {
    let loop = try EventLoop(check: nil)
    let jobs = try LoopJobs(loop, JobPool(name: "test-looks", most: 256, endsAfter: .seconds(5)))
    let count = Atomic(0)
    let look = SharedLook<Int>(jobs, about: "a disk", within: .seconds(60)) {
      { count.add(1, ordering: .relaxed).newValue }
    }
    var found: [Int?] = []
    for _ in 0..<3 { look.ask { found.append($0) } }
    #expect(found.isEmpty)
    try turn(loop) { found.count == 3 }
    // The first call has a result of its own; the two others came while its inspection ran.
    #expect(found == [1, 2, 2])
  }

  @Test("A line makes a limited number of looks at once, and one that hangs gives up its place")
  func line() throws {
    let loop = try EventLoop(check: nil)
    let line = LookLine(loop, width: 2, patience: .milliseconds(50))
    var begun: [Int] = []
    var ends: [() -> Void] = []
    for number in 0..<4 {
      line.enter { done in
        begun.append(number)
        ends.append(done)
      }
    }
    #expect(begun == [0, 1])
    ends[1]()
    #expect(begun == [0, 1, 2])
    // Neither 0 nor 2 ends.
    try turn(loop) { begun.count == 4 }
    #expect(begun == [0, 1, 2, 3])
    // Another inspection has replaced it already.
    ends[0]()
    ends[0]()
  }

  @Test("A look that hangs is given up at its limit, and later ones fail at once until it ends")
  func hangs() throws {
    let loop = try EventLoop(check: nil)
    let jobs = try LoopJobs(loop, JobPool(name: "test-looks", most: 256, endsAfter: .seconds(5)))
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    let (output, input) = (Descriptor(owning: ends[0]), Descriptor(owning: ends[1]))
    let look = SharedLook<Int>(jobs, about: "a disk", within: .milliseconds(50)) {
      { Int((try? output.read(upTo: 1))?.first ?? 0) }
    }
    var found: [Int?] = []
    look.ask { found.append($0) }
    look.ask { found.append($0) }
    try turn(loop) { found.count == 2 }
    #expect(found == [nil, nil])
    // The thread continues with the first byte. A later inspection gets the next byte, or an error
    // that it must wait.
    try input.writeAll("ab")
    let end = EventLoop.now + .seconds(60)
    while found.last == .some(nil), EventLoop.now < end {
      let count = found.count
      look.ask { found.append($0) }
      try turn(loop) { found.count > count }
    }
    #expect(found.last == .some(Int(UInt8(ascii: "b"))))
  }
}
