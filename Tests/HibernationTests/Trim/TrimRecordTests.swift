import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// The file that a trim by borrowed threads leaves if the daemon dies.
struct TrimRecordTests {
  static let process = ProcessIdentity(pid: 4711, startTime: 99)

  static let record = TrimRecord(
    boot: "5f3c", root: process,
    stopped: [process, ProcessIdentity(pid: 4712, startTime: 100)],
    borrowed: [
      TrimRecord.Borrowed(
        process: process, tid: 4713, signalMask: 0xf0, scratch: 0x7f00_0000_0000,
        registers: [1, 2, .max])
    ])

  @Test("A record is read as it was written")
  func roundTrip() throws {
    #expect(try TrimRecord(parsing: Self.record.bytes) == Self.record)
  }

  @Test("A record with any bit changed or any byte missing is refused")
  func damaged() {
    let bytes = Self.record.bytes
    for index in bytes.indices {
      var changed = bytes
      changed[index] ^= 1 << UInt8(index % 8)
      #expect(throws: TrimRecord.Damaged.self) { try TrimRecord(parsing: changed) }
      #expect(throws: TrimRecord.Damaged.self) {
        try TrimRecord(parsing: Array(bytes.prefix(index)))
      }
    }
  }

  @Test(
    "A record whose content makes no sense is refused",
    arguments: [
      { (record: inout TrimRecord) in record.borrowed[0].tid = 0 },
      { (record: inout TrimRecord) in record.borrowed[0].scratch = 5 },
      { (record: inout TrimRecord) in record.borrowed[0].registers = Array(repeating: 0, count: 999)
      },
      { (record: inout TrimRecord) in record.stopped = [] },
      { (record: inout TrimRecord) in record.root = ProcessIdentity(pid: 1, startTime: 1) },
    ] as [@Sendable (inout TrimRecord) -> Void])
  func senseless(change: @Sendable (inout TrimRecord) -> Void) {
    var record = Self.record
    change(&record)
    #expect(throws: TrimRecord.Damaged.self) { try TrimRecord(parsing: record.bytes) }
  }

  @Test func `A damaged record stops the wake of a worker only if it is of this boot`() throws {
    let path = Fixture.imagePath()
    let root = try ProcessIdentity.current(of: getpid())
    try StateFile.replace(path, with: [], durability: .none)
    #expect(throws: HibernationError.self) { try Hibernator.repairTrim(record: path, of: root) }
    #expect(fileExists(path))
    // The machine has lost power while the worker was trimmed.
    var times = [timeval(tv_sec: 1_000_000, tv_usec: 0), timeval(tv_sec: 1_000_000, tv_usec: 0)]
    #expect(utimes(path, &times) == 0)
    try Hibernator.repairTrim(record: path, of: root)
    #expect(!fileExists(path))
  }
}
