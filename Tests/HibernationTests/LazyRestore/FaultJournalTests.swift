import CLinux
import Glibc
import Linux
import Testing

@testable import Hibernation

/// What a worker's journal says of the order of its changes.
struct FaultJournalTests {
  private let journal: FaultJournal

  init() throws {
    typealias MemfdCreate = @convention(c) (UnsafePointer<CChar>, UInt32) -> Int32
    let symbol = try #require(dlsym(nil, "memfd_create"))
    let file = Descriptor(owning: unsafeBitCast(symbol, to: MemfdCreate.self)("test", 3))
    journal = try FaultJournal.create(
      in: file, of: ProcessIdentity(pid: 1, startTime: 1), userfault: 3, inode: 4)
  }

  private func unmapped(_ start: UInt64, _ end: UInt64) -> FaultJournal.Message {
    var message = FaultJournal.Message()
    (message.event, message.a, message.b) = (UInt8(CLINUX_UFFD_UNMAP), start, end)
    return message
  }

  private func starts(_ batches: [[FaultJournal.Message]]) -> [[UInt64]] {
    batches.map { $0.filter { Int($0.event) == CLINUX_UFFD_UNMAP }.map(\.a) }
  }

  @Test("Batches that end while changes are under way aren't settled before the next quiet moment")
  func settled() throws {
    try journal.replaceOpenBatch(with: [unmapped(1, 2)])
    journal.markQuiet()
    try journal.replaceOpenBatch(with: [unmapped(3, 4)])
    journal.markOrdered()
    try journal.replaceOpenBatch(with: [unmapped(5, 6)])
    #expect(starts(journal.batches.settled) == [[1]])
    #expect(starts(journal.batches.unsettled) == [[3]])
    #expect(starts([journal.batches.open]) == [[5]])
    journal.markOrdered()
    journal.markQuiet()
    #expect(starts(journal.batches.settled) == [[1], [3], [5]])
    #expect(journal.batches.open.isEmpty)
  }

  @Test("A batch whose order proves uncertain is open again, together with the one after it")
  func reopened() throws {
    try journal.replaceOpenBatch(with: [unmapped(1, 2)])
    journal.markOrdered()
    try journal.replaceOpenBatch(with: [unmapped(3, 4)])
    journal.reopenLastBatch()
    #expect(journal.batches.closed.isEmpty)
    #expect(starts([journal.batches.open]) == [[1, 3]])
  }

  @Test("The open batch can be replaced by more or fewer messages, and the closed ones stay")
  func replaced() throws {
    try journal.replaceOpenBatch(with: [unmapped(1, 2)])
    journal.markQuiet()
    for count in [3, 1, 0, 2] {
      try journal.replaceOpenBatch(with: (0..<count).map { unmapped(UInt64($0), 9) })
      #expect(journal.batches.open.count == count)
      #expect(starts(journal.batches.closed) == [[1]])
    }
  }
}
