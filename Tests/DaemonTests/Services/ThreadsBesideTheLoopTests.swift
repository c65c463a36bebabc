import Glibc
import Linux
import Policy
import Synchronization
import TestSupport
import Testing

@testable import Daemon

@Suite("Inspections of what may not respond") struct CoalescedProbeTests {
  @Test func `Calls during an inspection share the next one, and only one runs at a time`() throws {
    let loop = try EventLoop(check: nil)
    let jobs = try LoopJobs(loop, .forTest)
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

  @Test func `A limited number of inspections run at once; one that hangs isn't counted`() throws {
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

  @Test func `An inspection that hangs is given up, and later ones fail meanwhile`() throws {
    let loop = try EventLoop(check: nil)
    let jobs = try LoopJobs(loop, .forTest)
    let (output, input) = try Descriptor.pipe()
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

@Suite("The daemon's log") struct LogWriterTests {
  @Test func `Logging waits for no reader that has stopped, and counts lost lines`() throws {
    let (out, into) = try Descriptor.pipe()
    let writer = LogWriter(into)
    let line = Array((String(repeating: "x", count: 999) + "\n").utf8)
    let start = ContinuousClock.now
    for _ in 0..<3000 { writer.write(line) { Array("lost \($0)\n".utf8) } }
    // In an earlier version, the 66th line waited for the reader.
    #expect(ContinuousClock.now - start < .seconds(30))

    // Counts written and lost lines. The thread may begin late, and report twice.
    var text: [UInt8] = []
    var accounted = 0
    let deadline = Deadline(in: .seconds(60))
    while accounted < 3000, !deadline.hasPassed {
      text += try out.read(upTo: 65536)
      let whole = text.prefix(text.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0)
      accounted = String(decoding: whole, as: UTF8.self).split(separator: "\n").reduce(0) {
        $0 + ($1.hasPrefix("lost ") ? Int($1.dropFirst("lost ".count)) ?? 0 : 1)
      }
    }
    #expect(accounted == 3000)
    #expect(String(decoding: text, as: UTF8.self).contains("lost "))
  }

  @Test func `At the daemon's end all of the log is written, as long as a reader reads`() throws {
    let (out, into) = try Descriptor.pipe()
    let writer = LogWriter(into)
    for number in 0..<100 { writer.write(Array("\(number)\n".utf8)) { _ in [] } }
    writer.drain(within: .seconds(60))
    let text = String(decoding: try out.read(upTo: 65536), as: UTF8.self)
    #expect(text == (0..<100).map { "\($0)\n" }.joined())
  }
}

@Suite("Jobs beside the event loop") struct LoopJobsTests {
  @Test func `Jobs return a value, or an error; a hung subject isn't tried again`() throws {
    let loop = try EventLoop()
    let jobs = try LoopJobs(loop, .forTest)
    let gate = ThreadGate()
    defer { gate.open() }
    var outcomes: [String] = []
    func record(_ outcome: JobOutcome<Int>) {
      switch outcome {
      case .done(let value): outcomes.append("done \(value)")
      case .overdue: outcomes.append("overdue")
      case .busy: outcomes.append("busy")
      }
    }
    jobs.run(about: "well", within: .seconds(60), { 1 }, then: record)
    #expect(outcomes == [])
    try loop.turn { !outcomes.isEmpty }
    #expect(outcomes == ["done 1"])

    func hang() -> @Sendable () -> Int {
      {
        gate.pass()
        return 2
      }
    }
    jobs.run(about: "hung", within: .milliseconds(50), hang()) { record($0) }
    try loop.turn { outcomes.count == 2 }
    jobs.run(about: "hung", within: .seconds(60), { 3 }, then: record)
    try loop.turn { outcomes.count == 3 }
    jobs.run(about: "well", within: .seconds(60), { 4 }, then: record)
    try loop.turn { outcomes.count == 4 }
    #expect(outcomes == ["done 1", "overdue", "busy", "done 4"])
  }

  @Test func `A job may report values any number of times, until its sender is freed`() throws {
    let loop = try EventLoop()
    let back = try LoopReturn(loop)
    weak var kept: Recorded<Int>?
    try {
      let heard = Recorded<Int>()
      kept = heard
      let report: @Sendable (Int) -> Void = back.relay { heard.all.append($0) }
      let thread = Thread.start(name: "test") { for number in 1...3 { report(number) } }
      #expect(thread)
      try loop.turn { heard.all.count == 3 }
      #expect(heard.all == [1, 2, 3])
    }()
    try loop.turn { kept == nil }
    #expect(kept == nil)
  }
}

@Suite("Messages to the event loop") struct MailboxTests {
  private let loop: EventLoop
  private let receiver = Recorded<Int>()

  init() throws { loop = try EventLoop(check: nil) }

  private func watch(_ mailbox: Mailbox<Recorded<Int>>) throws {
    try loop.watch(mailbox.descriptor, .readable) { [receiver, loop] _ in
      mailbox.drain(receiver, on: loop)
    }
  }

  @Test func `Messages of one thread come in their order, and none is lost`() throws {
    let mailbox = try Mailbox<Recorded<Int>>()
    try watch(mailbox)
    let threads = try (0..<8).map { thread in
      try TestThread {
        for number in 0..<500 { mailbox.post { $0.all.append(thread * 1000 + number) } }
      }
    }
    try loop.turn { receiver.all.count == 4000 }
    for thread in threads { thread.join() }
    #expect(Set(receiver.all).count == 4000 && receiver.all.count == 4000)
    for thread in 0..<8 {
      let fromThread = receiver.all.filter { $0 / 1000 == thread }
      #expect(fromThread == fromThread.sorted())
    }
  }

  @Test func `A message that is posted while others are handled comes in the next turn`() throws {
    let mailbox = try Mailbox<Recorded<Int>>()
    try watch(mailbox)
    mailbox.post {
      $0.all.append(1)
      mailbox.post { $0.all.append(3) }
    }
    mailbox.post { $0.all.append(2) }
    try loop.turn { receiver.all.count == 2 }
    #expect(receiver.all == [1, 2])
    try loop.turn { receiver.all.count == 3 }
    #expect(receiver.all == [1, 2, 3])
  }

  @Test func `Messages that were never read are freed with the mailbox`() throws {
    final class Load: Sendable {}
    weak var kept: Load?
    try {
      let mailbox = try Mailbox<Recorded<Int>>()
      let load = Load()
      kept = load
      for _ in 0..<3 { mailbox.post { [load] _ in withExtendedLifetime(load) {} } }
    }()
    #expect(kept == nil)
  }

  @Test func `An outcome that another thread reports twice counts once`() throws {
    let back = try LoopReturn(loop)
    let done: @Sendable (Int) -> Void = back.callback { [receiver] in receiver.all.append($0) }
    done(1)
    done(2)
    let last: @Sendable (Int) -> Void = back.callback { [receiver] in receiver.all.append($0) }
    last(3)
    try loop.turn { receiver.all.count == 2 }
    #expect(receiver.all == [1, 3])
  }
}
