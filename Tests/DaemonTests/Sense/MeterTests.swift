import DaemonFakes
import Glibc
import Policy
import TestSupport
import Testing

@testable import Daemon
@testable import Linux

@Suite struct `A running worker that doesn't run on any processor` {
  private func sample() -> ActivitySample {
    var sample = ActivitySample()
    sample.cpu = 500
    sample.isUnchanged = true
    return sample
  }

  @Test func `A worker that uses no processor time is examined at each thirtieth sample`() {
    var sample = sample()
    let skipped = (0..<90).map { sample.canSkip(cpu: 500, at: Instant(nanoseconds: $0)) }
    let period = Array(repeating: true, count: 29) + [false]
    #expect(skipped == period + period + period)
    // The next share covers the time from the last skipped sample on.
    #expect(sample.at == Instant(nanoseconds: 88))
  }

  @Test(arguments: [501, nil] as [UInt64?])
  func `A worker is examined if it has used processor time, or that isn't known`(cpu: UInt64?) {
    var sample = sample()
    let skips = sample.canSkip(cpu: cpu, at: Instant(nanoseconds: 77))
    #expect(!skips && sample.at == .zero)
  }
}

@Suite struct `Stalls on memory` {
  @Test(
    "Stalls on memory are a share of the window, forgotten after it, and unknown before a reading",
    arguments: [
      // The stall is 300 ms in the first second, and there is a reading in the midst of the second.
      [(0, 0, nil), (1, 300_000, 15), (1.01, 300_000, 15), (2, 300_000, 15)],
      [(0, 0, nil), (1, 300_000, 15), (3, 300_000, 0), (4, 300_000, 0)],
      [(0, 0, nil), (0.1, 100_000, 5)],
    ] as [[(seconds: Double, some: UInt64, share: Double?)]])
  func share(readings: [(seconds: Double, some: UInt64, share: Double?)]) {
    var meter = StallMeter()
    for reading in readings {
      let stall = PressureStall(parsing: Array("some avg10=0.00 total=\(reading.some)\n".utf8))
      let now = Instant(nanoseconds: Int64(reading.seconds * 1e9))
      let share = meter.read(stall, at: now, window: .seconds(2))?.some
      #expect(share == reading.share, "\(reading)")
    }
  }
}

@Suite("Whether a wrapped program is at work") struct WorkMeterTests {
  @Test func `Output since the last sample counts as work, and so does a running thread`() {
    var meter = WorkMeter()
    #expect(meter.compare([7], hasWritten: false) { _ in false } == nil)
    #expect(meter.compare([7], hasWritten: true) { _ in false } == .output)
    #expect(meter.compare([7], hasWritten: false) { $0 == 7 } == .processor)
    #expect(meter.compare([7], hasWritten: false) { _ in false } == nil)
  }

  @Test func `A process that starts or ends between two samples counts as work`() {
    var meter = WorkMeter()
    #expect(meter.compare([7, 8], hasWritten: false) { _ in false } == nil)
    #expect(meter.compare([7, 8, 9], hasWritten: false) { _ in false } == .processes)
    #expect(meter.compare([7, 8, 9], hasWritten: false) { _ in false } == nil)
    #expect(meter.compare([7, 9], hasWritten: false) { _ in false } == .processes)
    // The number of processes is the same, but they are others.
    #expect(meter.compare([7, 10], hasWritten: false) { _ in false } == .processes)
  }
}

@Suite("What a worker writes by itself") struct WriteMeterTests {
  private static func times(_ seconds: [Int], _ written: Written, hasClients: Bool) -> [Bool] {
    var writing = RegularWriting()
    return seconds.map {
      writing.record(written, hasClients: hasClients, at: Instant.zero + .seconds($0))
    }
  }

  @Test func `Two writes within 50 s of a worker without clients are work, rarer ones aren't`() {
    let line = Written(bytes: 29, logged: 29, reachesDisk: false)
    #expect(Self.times([0, 20, 40], line, hasClients: false) == [false, true, true])
    #expect(Self.times([0, 51, 102, 110], line, hasClients: false) == [false, false, false, true])
    // Threads of a worker wake each other by single bytes.
    let byte = Written(bytes: 1, logged: 0, reachesDisk: false)
    #expect(!Self.times([0, 1, 2, 3, 4], byte, hasClients: false).contains(true))
  }

  @Test func `Of a server only writes to files count, without its log, and three within 50 s`() {
    let file = Written(bytes: 29, logged: 0, reachesDisk: true)
    #expect(Self.times([0, 2, 4], file, hasClients: true) == [false, false, true])
    // These are the writes of an idle PostgreSQL.
    #expect(!Self.times([0, 15, 60, 75, 120, 135], file, hasClients: true).contains(true))
    let log = Written(bytes: 29, logged: 29, reachesDisk: true)
    #expect(!Self.times([0, 2, 4, 6], log, hasClients: true).contains(true))
    let pipe = Written(bytes: 29, logged: 0, reachesDisk: false)
    #expect(!Self.times([0, 2, 4, 6], pipe, hasClients: true).contains(true))
  }

  @Test func `A dirty page of a file is counted once, and the writes to it each time`() {
    var writing = RegularWriting()
    var results: [Bool] = []
    for second in 0..<10 {
      let written = Written(bytes: 29, logged: 0, reachesDisk: second == 0)
      results.append(
        writing.record(written, hasClients: true, at: Instant.zero + .seconds(second * 2)))
    }
    #expect(results == [false, false] + Array(repeating: true, count: 8))
  }

  @Test func `Writing is under way for 50 s after the last of several writes`() {
    var writing = RegularWriting()
    let line = Written(bytes: 29, logged: 0, reachesDisk: false)
    _ = writing.record(line, hasClients: false, at: Instant.zero)
    #expect(!writing.isUnderWay(hasClients: false, at: Instant.zero))
    _ = writing.record(line, hasClients: false, at: Instant.zero + .seconds(2))
    #expect(writing.isUnderWay(hasClients: false, at: Instant.zero + .seconds(52)))
    #expect(!writing.isUnderWay(hasClients: false, at: Instant.zero + .seconds(53)))
    #expect(!writing.isUnderWay(hasClients: true, at: Instant.zero + .seconds(2)))
  }

  @Test func `The growth of a log that is both standard output and error counts once`() {
    #expect(WriteMeter.growth(from: [100, 100], to: [130, 130]) == 30)
    #expect(WriteMeter.growth(from: [100, 7], to: [130, 9]) == 32)
    #expect(WriteMeter.growth(from: [nil, 7], to: [130, 7]) == 0)
    #expect(WriteMeter.growth(from: [100, 100], to: [0, 0]) == 0)
    #expect(WriteMeter.growth(from: [], to: [130, 130]) == 0)
  }

  @Test func `A process's writes are seen, with the part that its standard output took`() throws {
    let scratch = try Scratch()
    let path = "\(scratch.path)/out"
    let script = "echo begun; read a; echo hello; echo more >> \(scratch.path)/file; read b"
    let input = try Descriptor.pipe()
    let output = try Descriptor.open(path, O_WRONLY | O_CREAT | O_APPEND, mode: 0o600)
    let process = try spawn(
      SpawnRequest(
        path: "/bin/sh", arguments: ["sh", "-c", script], environment: [:], directory: "/",
        input: input.reading.raw, output: output.raw, error: output.raw))
    defer { process.endForTest() }
    #expect(try eventually { try readText(path) == "begun\n" })
    let tree = try ProcessTree.discover(root: process.identity)
    var meter = WriteMeter()
    #expect(meter.sample(tree) == nil)
    try input.writing.writeAll("go\n")
    var sum = Written(bytes: 0, logged: 0, reachesDisk: false)
    let isSeen = try eventually {
      if let written = meter.sample(tree) {
        sum.bytes += written.bytes
        sum.logged += written.logged
      }
      return sum.bytes >= 11 && sum.logged >= 6
    }
    #expect(isSeen && sum.bytes == 11 && sum.logged == 6, "\(sum)")
  }
}

/// The bytes written to images are counted over 24 hours, also across daemons.
struct WriteLedgerTests {
  private let scratch: Scratch
  private var path: String { "\(scratch.path)/writes" }

  init() throws { scratch = try Scratch() }

  @Test func `Later daemons continue the count of written bytes, which covers a day`() throws {
    let start: Int64 = 1_790_000_000
    var ledger = WriteLedger(path: path)
    #expect(ledger.damage == nil)
    ledger.add(bytes: 1000, milliseconds: 30, at: start)
    try ledger.save()
    ledger.add(bytes: 200, milliseconds: 6, at: start + 5 * 3600)
    try ledger.save()
    var later = WriteLedger(path: path)
    #expect(later.damage == nil)
    #expect(
      later.total(at: start + 6 * 3600)
        == WriteLedger.Costs(bytes: 1200, milliseconds: 36, images: 2))
    later.add(bytes: 1, milliseconds: 1, at: start + 24 * 3600)
    try later.save()
    #expect(later.total(at: start + 24 * 3600).bytes == 201)
    #expect(WriteLedger(path: path).total(at: start + 30 * 3600).bytes == 1)
    #expect(WriteLedger(path: path).total(at: start + 60 * 3600).bytes == 0)
  }

  @Test func `A clock that is set back doesn't reset the count of written bytes`() throws {
    let start: Int64 = 1_790_000_000
    var ledger = WriteLedger(path: path)
    ledger.add(bytes: 1000, milliseconds: 30, at: start)
    try ledger.save()
    #expect(ledger.total(at: start - 7200).bytes == 1000)
    // An hour that is years ahead doesn't count for ever.
    #expect(ledger.total(at: start - 400 * 86400).bytes == 0)
  }

  @Test func `A damaged ledger counts as empty, and the damage is reported`() throws {
    var ledger = WriteLedger(path: path)
    ledger.add(bytes: 1000, milliseconds: 30, at: 1_790_000_000)
    try ledger.save()
    let good = try readFile(path)
    for index in good.indices {
      var bytes = good
      bytes[index] ^= 1
      let file = try Descriptor.open(path, O_WRONLY | O_TRUNC)
      try file.writeAll(String(decoding: bytes, as: UTF8.self))
      let read = WriteLedger(path: path)
      #expect(read.damage != nil, "byte \(index)")
      #expect(read.total(at: 1_790_000_000).bytes == 0)
    }
  }

  @Test func `A ledger that can't be saved still counts for this daemon`() {
    var ledger = WriteLedger(path: "/proc/none/writes")
    #expect(throws: SystemCallError.self) {
      ledger.add(bytes: 7, milliseconds: 1, at: 1_790_000_000)
      try ledger.save()
    }
    #expect(ledger.total(at: 1_790_000_000).bytes == 7)
  }
}
