import CLinux
import Glibc
import Linux

/// The record of what happened to a process's mappings while pages were missing: fork, mremap,
/// madvise, munmap.
///
/// The pager must know these changes, and its death must not lose them. So the journal is an
/// anonymous file (memfd), and the kernel itself writes it: the buffer that messages are read into
/// is a slot of the journal, mapped shared. The message is in the journal before the kernel lets
/// the worker continue, so a kill can't come between the two.
///
/// The daemon makes the file, and only its user may open it. The worker keeps it in existence
/// beyond the daemon's death by a descriptor that can only read. The daemon never reads its
/// mapping: it works with a copy of each message, made once, and copies an adopted journal as a
/// whole before it uses any of it.
///
/// The journal also shows a later daemon that this userfaultfd was made by Dormouse.
///
///     0        72 bytes: magic, version, pid, start time, userfaultfd's number and inode, phase,
///              whether a recovery has begun to fill children, the area that counts (0 or 1)
///     4096     area 0: slots of 32 bytes, until one whose event is 0 or a page fault
///     262144   area 1: slots, too
///
/// Two areas: a full journal is written again, shorter, into the other area, which counts from the
/// moment when the header names it.
final class FaultJournal: @unchecked Sendable {
  // Unchecked: one thread at a time uses it. During the background fill it is the pager's thread.
  // Otherwise it is the hibernator's thread, which waits for the pager to end before it touches the
  // worker.

  /// The progress of a lazy restore.
  enum Phase: UInt64 {
    case idle = 0
    /// Pages are being written and ranges registered. No process of the worker runs.
    case preparing
    /// The worker runs; pages are missing.
    case filling
    /// No page is missing any more.
    case complete
    /// The worker runs, and is trimmed: its missing pages stay in the image.
    case trimmed
    /// The worker is trimmed, and was frozen or stopped to be trimmed again.
    case handedOver
  }

  /// The journal has content that no kernel and no daemon can have written.
  struct Damaged: Error, CustomStringConvertible {
    let description: String
  }

  static let name = "dormouse-faults"
  static let length: UInt64 = 512 * 1024
  /// The offsets of the two areas.
  private static let areas = [4096, 256 * 1024]
  /// The number of slots in each area.
  static let slotCount = (areas[1] - areas[0]) / 32

  private let base: UnsafeMutableRawPointer
  private let descriptor: Descriptor
  /// The fields of the header, as this process knows them. `messages` is also its own copy.
  private var header: [UInt64]
  private(set) var messages: [Message] = []

  /// - Parameter descriptor: a journal whose size is sealed, so that nothing can shrink it and make
  ///   an access to the mapping kill the daemon (SIGBUS).
  private init(mapping descriptor: Descriptor, _ header: [UInt64]) throws(SystemCallError) {
    let address = try shim("mmap", on: Self.name) {
      clinux_map_shared(descriptor.raw, Int64(Self.length))
    }
    guard let area = UnsafeMutableRawPointer(bitPattern: Int(address)) else {
      throw SystemCallError("mmap", on: Self.name, code: EINVAL)
    }
    base = area
    self.descriptor = descriptor
    self.header = header
  }

  deinit { munmap(base, Int(Self.length)) }

  /// Makes an empty journal, which no other process has yet.
  static func create(
    of process: ProcessIdentity, userfault: Int32, inode: UInt64
  ) throws(SystemCallError) -> FaultJournal {
    let seals = Int32(CLINUX_SEAL_SHRINK) | Int32(CLINUX_SEAL_GROW) | 1  // F_SEAL_SEAL
    let file = Descriptor(
      owning: try shim("memfd_create", on: name) {
        clinux_sealed_memory_file(name, Int64(length), seals)
      })
    try file.setMode(0o600, path: name)
    let header = Header(process: process, userfault: userfault, inode: inode)
    let journal = try FaultJournal(mapping: file, header.fields + [Phase.idle.rawValue, 0, 0])
    for index in journal.header.indices { journal.writeHeader(index) }
    return journal
  }

  var inode: UInt64 { clinux_inode(descriptor.raw) }

  /// Opens a descriptor for the worker. It can't be used to write, and the worker's user may not
  /// open another one.
  func readOnly() throws(SystemCallError) -> Descriptor {
    try Descriptor.open("/proc/self/fd/\(descriptor.raw)", O_RDONLY)
  }

  /// Opens an earlier daemon's journal, ready to continue after its last message.
  ///
  /// - Throws: `Damaged` if it has messages that no kernel can have written.
  static func adopt(_ descriptor: Descriptor) throws -> FaultJournal {
    guard clinux_is_private_memfd(descriptor.raw, length) == 1 else {
      throw Damaged(description: "its fault journal isn't this daemon's own file")
    }
    var copy = [UInt8](repeating: 0, count: Int(length))
    let count = try copy.withUnsafeMutableBytes { try descriptor.read(into: $0, at: 0) }
    guard count == Int(length) else { throw Damaged(description: "its fault journal is cut off") }
    let header = copy.withUnsafeBytes { bytes in
      (0..<9).map { bytes.loadUnaligned(fromByteOffset: $0 * 8, as: UInt64.self) }
    }
    guard header[8] < UInt64(areas.count) else {
      throw Damaged(description: "its fault journal names an area that it doesn't have")
    }
    let journal = try FaultJournal(mapping: descriptor, header)
    // The earlier daemon may have died while it emptied or wrote the area that doesn't count.
    journal.clear(1 - journal.area)
    for index in 0..<(slotCount - 1) {
      var message = copy.withUnsafeBytes {
        $0.loadUnaligned(fromByteOffset: areas[journal.area] + index * 32, as: Message.self)
      }
      // A page fault isn't kept: a daemon that is killed between reading and removing it leaves it
      // at the end. Its page is filled with all others.
      if message.event == 0 || Int(message.event) == CLINUX_UFFD_PAGEFAULT { break }
      switch Int(message.event) {
      // The number was the earlier daemon's descriptor, and means nothing here.
      case CLINUX_UFFD_FORK, CLINUX_UFFD_FORK_DONE: message.a = 0
      case CLINUX_UFFD_REMAP, CLINUX_UFFD_REMOVE, CLINUX_UFFD_UNMAP, Int(quiet): break
      case let event: throw Damaged(description: "its fault journal has an unknown event \(event)")
      }
      journal.messages.append(message)
    }
    return journal
  }

  /// Frees slots that have no message. `read` makes the next one present again.
  func freeSlots() {
    if messages.isEmpty { clear(area) }
  }

  // MARK: header

  private func writeHeader(_ index: Int) {
    base.storeBytes(of: header[index], toByteOffset: index * 8, as: UInt64.self)
  }

  var phase: Phase? {
    get { Phase(rawValue: header[6]) }
    set {
      header[6] = newValue?.rawValue ?? 0
      writeHeader(6)
    }
  }

  /// True if a later daemon has begun to write to children that were forked while their pages were
  /// missing.
  var hasBegunChildren: Bool {
    get { header[7] != 0 }
    set {
      header[7] = newValue ? 1 : 0
      writeHeader(7)
    }
  }

  // MARK: messages

  typealias Message = clinux_uffd_message

  /// A message as the kernel has just written it.
  struct Received {
    let message: Message
    /// The child's userfaultfd, which the kernel gives to this process with a fork message.
    let child: Descriptor?
  }

  /// The event of a mark that is set when no change is under way: all messages before the mark are
  /// of earlier changes than all messages after it.
  static let quiet: UInt8 = 0xf4

  private func slot(_ index: Int) -> UnsafeMutablePointer<Message> { slot(index, in: area) }

  private func slot(_ index: Int, in area: Int) -> UnsafeMutablePointer<Message> {
    (base + Self.areas[area] + index * 32).assumingMemoryBound(to: Message.self)
  }

  /// The index of the area that counts.
  private var area: Int { header[8] == 0 ? 0 : 1 }

  /// Empties an area, and frees its memory.
  private func clear(_ area: Int) {
    let length = Self.slotCount * 32
    if clinux_punch(descriptor.raw, Int64(Self.areas[area]), Int64(length)) == 0 { return }
    memset(base + Self.areas[area], 0, length)
  }

  /// Reads the next message of the userfaultfd. Page faults aren't kept.
  func read(from userfault: Userfault) throws(SystemCallError) -> Received? {
    // One slot stays free, as the end mark.
    guard messages.count < Self.slotCount - 1 else {
      throw SystemCallError("read", on: "userfaultfd: its journal is full", code: ENOSPC)
    }
    let entry = slot(messages.count)
    // The write makes the page present before the kernel writes to it: a kill could interrupt a
    // copy that needs a new page.
    entry.pointee.event = 0
    let got = try shim("read", on: "userfaultfd of pid \(userfault.pid)") {
      clinux_uffd_read(userfault.descriptor.raw, entry)
    }
    if got == 0 { return nil }
    var message = entry.pointee
    if Int(message.event) == CLINUX_UFFD_PAGEFAULT {
      entry.pointee.event = 0
      return Received(message: message, child: nil)
    }
    guard Int(message.event) == CLINUX_UFFD_FORK else {
      messages.append(message)
      return Received(message: message, child: nil)
    }
    let number = Int32(truncatingIfNeeded: message.a)
    message.a = 0
    messages.append(message)
    guard Userfault.isUserfault(number) else {
      throw SystemCallError(
        "read", on: "the child in a fork message of pid \(userfault.pid)", code: EBADF)
    }
    return Received(message: message, child: Descriptor(owning: number))
  }

  /// True if more than half of the slots are in use.
  var isHalfFull: Bool { messages.count > Self.slotCount / 2 }

  func markQuiet() {
    guard let last = messages.last, last.event != Self.quiet, messages.count < Self.slotCount - 1
    else { return }
    var mark = Message()
    mark.event = Self.quiet
    slot(messages.count).pointee = mark
    messages.append(mark)
  }

  /// Records pages that the process has dropped without a message of the kernel. Returns false if
  /// the journal is half full: the other half is for messages of the kernel.
  func recordDropped(_ range: Range<UInt64>) -> Bool {
    if isHalfFull { return false }
    slot(messages.count).pointee = Self.dropped(range)
    messages.append(Self.dropped(range))
    markQuiet()
    return true
  }

  private static func dropped(_ range: Range<UInt64>) -> Message {
    var message = Message()
    message.event = UInt8(CLINUX_UFFD_UNMAP)
    (message.a, message.b) = (range.lowerBound, range.upperBound)
    return message
  }

  /// Replaces all messages, which must have been carried out, by one for each range that the
  /// process has dropped. A daemon that is killed meanwhile leaves the earlier ones.
  ///
  /// - Returns: false if these would be nearly as many.
  func replaceAll(withDropped ranges: [Range<UInt64>]) -> Bool {
    guard ranges.count < Self.slotCount / 4 else { return false }
    let other = 1 - area
    let shorter = ranges.map(Self.dropped)
    for (index, message) in shorter.enumerated() { slot(index, in: other).pointee = message }
    header[8] = UInt64(other)
    writeHeader(8)
    messages = shorter
    markQuiet()
    clear(1 - other)
    return true
  }

  /// The number of forks whose children don't have all of their pages yet.
  var openForks: Int { messages.count { Int($0.event) == CLINUX_UFFD_FORK } }

  /// Records that the children of all forks so far have their pages.
  func forksAreDone() {
    for index in messages.indices where Int(messages[index].event) == CLINUX_UFFD_FORK {
      messages[index].event = UInt8(CLINUX_UFFD_FORK_DONE)
      slot(index).pointee.event = UInt8(CLINUX_UFFD_FORK_DONE)
    }
    hasBegunChildren = false
  }

  /// Empties the journal.
  func reset(to phase: Phase) {
    if !messages.isEmpty { clear(area) }
    messages = []
    hasBegunChildren = false
    self.phase = phase
  }
}
