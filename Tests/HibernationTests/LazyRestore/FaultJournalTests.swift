import CLinux
import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// The effects that a worker can have on the journal that it keeps in existence.
@Suite(.serialized)
struct FaultJournalTests {
  private let thisProcess: ProcessIdentity

  init() throws { thisProcess = try ProcessStat.read(getpid()).identity }

  private func status(_ file: Descriptor) throws -> stat {
    var status = stat()
    _ = try systemCall("fstat") { fstat(file.raw, &status) }
    return status
  }

  private func write(_ bytes: [UInt8], to file: Descriptor, at offset: Int) throws {
    let count = bytes.withUnsafeBytes { pwrite(file.raw, $0.baseAddress, $0.count, off_t(offset)) }
    try #require(count == bytes.count)
  }

  @Test("A worker's descriptor of the journal can't write, and other users can't open the file")
  func readOnly() throws {
    let journal = try FaultJournal.create(of: thisProcess, userfault: 1, inode: 2)
    let held = try journal.readOnly()
    #expect(pwrite(held.raw, [1], 1, 0) == -1 && errno == EBADF)
    #expect(clinux_map_shared(held.raw, Int64(FaultJournal.length)) == Int64(-EACCES))
    #expect(try status(held).st_mode & 0o777 == 0o600)
    #expect(try status(held).st_uid == geteuid())
    #expect(ftruncate(held.raw, 0) == -1)
  }

  @Test func `A later daemon adopts what was read, and no descriptor's number with it`() throws {
    let journal = try FaultJournal.create(of: thisProcess, userfault: 1, inode: 2)
    journal.phase = .filling
    let (file, _) = try #require(
      try FaultJournal.all(in: getpid()).first {
        $0.header.process == thisProcess && $0.header.inode == 2
      })
    var message = clinux_uffd_message()
    message.event = UInt8(CLINUX_UFFD_FORK)
    message.a = 7
    try write(withUnsafeBytes(of: message) { Array($0) }, to: file, at: 4096)
    let adopted = try FaultJournal.adopt(file)
    #expect(adopted.phase == .filling)
    #expect(adopted.openForks == 1)
    #expect(adopted.batches.open.map(\.a) == [0])
    // What is written later changes nothing any more.
    message.event = UInt8(CLINUX_UFFD_REMAP)
    try write(withUnsafeBytes(of: message) { Array($0) }, to: file, at: 4096)
    #expect(adopted.openForks == 1)
  }

  @Test func `An empty journal gives back the memory of its slots, another keeps what it says`()
    throws
  {
    let journal = try FaultJournal.create(of: thisProcess, userfault: 1, inode: 5)
    journal.phase = .trimmed
    let (file, _) = try #require(
      try FaultJournal.all(in: getpid()).first {
        $0.header.process == thisProcess && $0.header.inode == 5
      })
    // As if a page fault had been read, which isn't kept.
    try write([0], to: file, at: 4096)
    let page = Int(max(pageSize, 4096)) / 512
    #expect(try status(file).st_blocks >= page)
    journal.freeSlots()
    #expect(try status(file).st_blocks == page, "the header's page")
    #expect(journal.recordDropped(0x10000..<0x20000))
    journal.freeSlots()
    let adopted = try FaultJournal.adopt(file)
    #expect(adopted.phase == .trimmed)
    #expect(adopted.messages.map(\.event) == [UInt8(CLINUX_UFFD_UNMAP), FaultJournal.quiet])
    #expect(adopted.messages.first.map { $0.a..<$0.b } == 0x10000..<0x20000)
  }

  @Test func `A journal with an event that no kernel sends isn't adopted`() throws {
    let journal = try FaultJournal.create(of: thisProcess, userfault: 1, inode: 3)
    defer { withExtendedLifetime(journal) {} }
    let (file, _) = try #require(try FaultJournal.all(in: getpid()).first { $0.header.inode == 3 })
    try write([0x7f], to: file, at: 4096)
    #expect(throws: FaultJournal.Damaged.self) { try FaultJournal.adopt(file) }
  }

  @Test("A page fault that a killed daemon has left is the end of the journal, and is overwritten")
  func pageFaultAtEnd() throws {
    let journal = try FaultJournal.create(of: thisProcess, userfault: 1, inode: 6)
    defer { withExtendedLifetime(journal) {} }
    let (file, _) = try #require(try FaultJournal.all(in: getpid()).first { $0.header.inode == 6 })
    try write([UInt8(CLINUX_UFFD_REMAP)], to: file, at: 4096)
    try write([UInt8(CLINUX_UFFD_PAGEFAULT)], to: file, at: 4096 + 32)
    let adopted = try FaultJournal.adopt(file)
    #expect(adopted.batches.open.map { Int($0.event) } == [CLINUX_UFFD_REMAP])
    adopted.markQuiet()
    let next = try FaultJournal.adopt(file)
    #expect(next.batches.closed.count == 1 && next.batches.open.isEmpty)
  }

  @Test(
    "A journal that another user can write to, or that an earlier version made, isn't trusted",
    arguments: ["mode", "owner", "version"])
  func untrusted(what: String) throws {
    if what == "owner", geteuid() != 0 { return notTestedHere("giving a file away takes root") }
    let journal = try FaultJournal.create(of: thisProcess, userfault: 1, inode: 4)
    defer { withExtendedLifetime(journal) {} }
    let (file, header) = try #require(
      try FaultJournal.all(in: getpid()).first { $0.header.inode == 4 })
    #expect(header.isTrusted)
    switch what {
    case "mode": try #require(fchmod(file.raw, 0o666) == 0)
    case "owner": try #require(fchown(file.raw, 65534, 65534) == 0)
    default: try write([1, 0, 0, 0, 0, 0, 0, 0], to: file, at: 8)
    }
    let again = try #require(try FaultJournal.all(in: getpid()).first { $0.header.inode == 4 })
    #expect(!again.header.isTrusted)
    if what != "version" {
      #expect(throws: FaultJournal.Damaged.self) { try FaultJournal.adopt(again.file) }
    }
  }

  @Test(
    "A journal that can't be looked for is reported, and isn't taken for no journal",
    arguments: [EMFILE, ENFILE, ENOMEM, EACCES])
  func shortage(code: Int32) throws {
    let journal = try FaultJournal.create(of: thisProcess, userfault: 1, inode: 5)
    defer { withExtendedLifetime(journal) {} }
    let directory = "/proc/\(getpid())/fd"
    let error = SystemCallError("open", on: directory, code: code)
    let fault = InjectedFault(code, of: directory)
    #expect(throws: error) { try fault.during { _ = try FaultJournal.all(in: getpid()) } }
    #expect(throws: error) { try fault.during { _ = try FaultHandle.find(in: thisProcess) } }
    #expect(throws: error) {
      try fault.during { _ = try Eligibility.foreignUserfaults(of: getpid()) }
    }
    // A file of another user, which may not be opened, is no journal of this daemon.
    if code == EACCES { return }
    for step in 1... {
      let fault = InjectedFault(code, at: step..<(step + 1))
      let journals = Result { try fault.during { try FaultJournal.all(in: getpid()) } }
      if fault.subjects.count <= step { break }
      switch journals {
      case .failure(let error): #expect((error as? SystemCallError)?.code == code)
      case .success(let journals): #expect(journals.contains { $0.header.inode == 5 })
      }
    }
  }

  @Test("A journal that is written again has only what was dropped, for a later daemon too")
  func writtenAnew() throws {
    let journal = try FaultJournal.create(of: thisProcess, userfault: 1, inode: 7)
    let (file, _) = try #require(try FaultJournal.all(in: getpid()).first { $0.header.inode == 7 })
    for round in 1...3 {
      for number in 0..<20 {
        let start = UInt64(number) * 0x10_0000
        #expect(journal.recordDropped(start..<(start + UInt64(round) * 0x1000)))
      }
      let dropped = (0..<5).map { UInt64($0) * 0x10_0000 }.map { $0..<($0 + 0x2000) }
      #expect(journal.replaceAll(withDropped: dropped))
      let adopted = try FaultJournal.adopt(file)
      #expect(adopted.batches.closed.flatMap { $0 }.map(\.a) == dropped.map(\.lowerBound))
      #expect(adopted.batches.open.isEmpty)
      let layout = try PageLayout(replaying: adopted.batches.closed)
      #expect(layout.droppedAlone == dropped)
    }
    let many = (0..<UInt64(FaultJournal.slotCount)).map { $0 * 0x2000..<($0 * 0x2000 + 0x1000) }
    #expect(!journal.replaceAll(withDropped: many))
    try write([2, 0, 0, 0, 0, 0, 0, 0], to: file, at: 64)
    #expect(throws: FaultJournal.Damaged.self) { try FaultJournal.adopt(file) }
  }

  @Test("A journal reports that it is half full of dropped pages, and has room when it is shorter")
  func halfFull() throws {
    let journal = try FaultJournal.create(of: thisProcess, userfault: 1, inode: 9)
    var count: UInt64 = 0
    func record() -> Bool {
      count += 1
      return journal.recordDropped((count * 0x2000)..<(count * 0x2000 + 0x1000))
    }
    while record() {}
    #expect(journal.isHalfFull && journal.messages.count < FaultJournal.slotCount - 1)
    #expect(journal.replaceAll(withDropped: [0x2000..<0x8000]))
    #expect(record())
    #expect(journal.messages.contains { $0.a == count * 0x2000 })
  }

  @Test(
    "A read doesn't wait if the worker has made the userfaultfd blocking, and stolen the message")
  func blockingRead() throws {
    let raw = clinux_open_userfault(-1)
    if raw < 0 { return notTestedHere("userfaultfd takes root") }
    var userfault = Userfault(descriptor: Descriptor(owning: raw), pid: getpid())
    try userfault.negotiate(tracksWrites: false)
    let journal = try FaultJournal.create(of: thisProcess, userfault: 1, inode: 8)
    try userfault.descriptor.setFlags(0)
    let hasRead = Semaphore()
    let isStarted = Thread.start(name: "test") { [userfault] in
      #expect(throws: Never.self) { try #require(try journal.read(from: userfault) == nil) }
      hasRead.signal()
    }
    #expect(isStarted)
    #expect(hasRead.wait(within: .seconds(60)))
    #expect(!userfault.isReadable)
    #expect(fcntl(userfault.descriptor.raw, F_GETFL) & O_NONBLOCK != 0)
  }

  @Test func `A process that has ended has no journals`() throws {
    // The kernel never gives such a high number.
    #expect(try FaultJournal.all(in: .max).isEmpty)
    #expect(try Eligibility.foreignUserfaults(of: .max).isEmpty)
  }

  @Test("Only a process with all of the daemon's rights, or of another user, gets a journal")
  func rights() {
    func status(_ user: UInt32, _ capabilities: UInt64) -> ProcessStatus {
      var status = ProcessStatus(parsing: [])
      (status.user, status.effectiveCapabilities) = (user, capabilities)
      return status
    }
    let root = status(0, 0x1ff_ffff_ffff)
    #expect(FaultHandle.obstacle(status(0, 0x1ff_ffff_ffff), daemon: root) == nil)
    #expect(FaultHandle.obstacle(status(1000, 0), daemon: root) == nil)
    // The first case is root in a container, the second a user that may write to all files.
    #expect(FaultHandle.obstacle(status(0, 0xa804_25fb), daemon: root) != nil)
    #expect(FaultHandle.obstacle(status(1000, 1 << 1), daemon: root) != nil)
    #expect(FaultHandle.obstacle(status(1000, 0), daemon: status(1000, 0)) == nil)
  }

  @Test(
    "A worker prepared for lazy restore has two more descriptors; the journal's only reads",
    .needsUserfaults)
  func inWorker() throws {
    let service = HibernationService()
    let victim = try Victim(ready: "churn", "2", "4", "64", parking: .frozen)
    let pid = victim.process.pid
    let before = try listDirectory("/proc/\(pid)/fd").count
    let path = Fixture.imagePath()
    #expect(try victim.sleep(service, at: path, restore: .lazy).lazyRefusal == nil)
    let target = victim.target
    let links = try listDirectory("/proc/\(pid)/fd").map {
      (number: $0, target: readLink("/proc/\(pid)/fd/\($0)"))
    }
    #expect(links.count == before + 2)
    let journal = try #require(links.first { $0.target?.hasPrefix("/memfd:") == true })
    let info = try readText("/proc/\(pid)/fdinfo/\(journal.number)")
    let flags = try #require(info.split(separator: "\n").first { $0.hasPrefix("flags:") })
    #expect(flags.last == "0", "O_RDONLY: \(flags)")
    #expect(try FaultJournal.all(in: pid).map(\.header.isTrusted) == [true])
    try service.resume(target, from: RestingImage(path: path, .lazy(learns: true)))
    try service.awaitFill(of: target.name)
  }
}
