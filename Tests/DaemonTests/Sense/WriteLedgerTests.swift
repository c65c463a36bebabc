import Glibc
import TestSupport
import Testing

@testable import Daemon
@testable import Linux

/// The bytes written to images are counted over 24 hours, also across daemons.
struct WriteLedgerTests {
  private let scratch: Scratch
  private var path: String { "\(scratch.path)/writes" }

  init() throws { scratch = try Scratch() }

  @Test("A later daemon continues to count written bytes, and a day later they are forgotten")
  func rolls() throws {
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

  @Test("A damaged ledger of written bytes counts as empty, and the damage is reported")
  func damaged() throws {
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
