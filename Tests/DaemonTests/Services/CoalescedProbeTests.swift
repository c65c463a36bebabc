import Glibc
import Linux
import Policy
import Synchronization
import Testing

@testable import Daemon

@Suite("Inspections of what may not respond") struct CoalescedProbeTests {
  @Test func `Calls during an inspection share the next one, and only one runs at a time`() throws {
    let loop = try EventLoop(check: nil)
    let jobs = try LoopJobs(
      loop, JobPool(name: "test-looks", maxOrdinary: 256, endsAfter: .seconds(5)))
    let count = Atomic(0)
    let probe = CoalescedProbe<Int>(jobs, about: "a disk", within: .seconds(60)) {
      { count.add(1, ordering: .relaxed).newValue }
    }
    var values: [Int?] = []
    for _ in 0..<3 { probe.ask { values.append($0) } }
    #expect(values.isEmpty)
    try loop.turn { values.count == 3 }
    // The first call has a result of its own; the two others came while its inspection ran.
    #expect(values == [1, 2, 2])
  }

  @Test("A limited number of inspections run at once, and one that hangs doesn't count")
  func limiter() throws {
    let loop = try EventLoop(check: nil)
    let limiter = ConcurrencyLimiter(loop, width: 2, timeout: .milliseconds(50))
    var begun: [Int] = []
    var ends: [() -> Void] = []
    for number in 0..<4 {
      limiter.enter { done in
        begun.append(number)
        ends.append(done)
      }
    }
    #expect(begun == [0, 1])
    ends[1]()
    #expect(begun == [0, 1, 2])
    // Neither 0 nor 2 ends.
    try loop.turn { begun.count == 4 }
    #expect(begun == [0, 1, 2, 3])
    // Another inspection has replaced it already.
    ends[0]()
    ends[0]()
  }

  @Test("An inspection that hangs is given up at its limit, and later ones fail until it ends")
  func hangs() throws {
    let loop = try EventLoop(check: nil)
    let jobs = try LoopJobs(
      loop, JobPool(name: "test-looks", maxOrdinary: 256, endsAfter: .seconds(5)))
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    let (output, input) = (Descriptor(owning: ends[0]), Descriptor(owning: ends[1]))
    let probe = CoalescedProbe<Int>(jobs, about: "a disk", within: .milliseconds(50)) {
      { Int((try? output.read(upTo: 1))?.first ?? 0) }
    }
    var values: [Int?] = []
    probe.ask { values.append($0) }
    probe.ask { values.append($0) }
    try loop.turn { values.count == 2 }
    #expect(values == [nil, nil])
    // The thread continues with the first byte. A later inspection gets the next byte, or an error
    // that it must wait.
    try input.writeAll("ab")
    let end = EventLoop.now + .seconds(60)
    while values.last == .some(nil), EventLoop.now < end {
      let count = values.count
      probe.ask { values.append($0) }
      try loop.turn { values.count > count }
    }
    #expect(values.last == .some(Int(UInt8(ascii: "b"))))
  }
}
