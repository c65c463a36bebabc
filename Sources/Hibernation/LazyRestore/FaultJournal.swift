import CLinux
import Glibc
import Linux

/// What happened to a process's mappings while pages were missing: fork, mremap, madvise, munmap.
///
/// The process that fills pages must know these changes, and the knowledge must survive its death. So the
/// journal is an anonymous file (memfd) that the *worker* holds beside its userfaultfd, and the kernel itself
/// writes it: the buffer that messages are read into is a slot of the journal, mapped shared. The message is
/// in the journal before the kernel lets the worker continue, so a kill can't come between the two.
///
/// The journal also shows a later daemon that this userfaultfd was made by Dormouse.
///
///     0        64 bytes: magic, version, pid, start time, userfaultfd's number and inode, phase,
///              whether a recovery has begun to fill children
///     4096     slots of 32 bytes, until one whose event is 0
final class FaultJournal: @unchecked Sendable {
  // Unchecked: one thread at a time uses it. During the background fill it is the pager's thread. Otherwise
  // it is the hibernator's thread, which waits for the pager to end before it touches the worker.

  /// The progress of a lazy restore.
  enum Phase: UInt64 {
    case idle = 0
    /// Pages are being written and ranges registered. No process of the worker runs.
    case preparing
    /// The worker runs; pages are missing.
    case filling
    /// No page is missing any more.
    case complete
  }

  static let name = "dormouse-faults"
  static let length: UInt64 = 256 * 1024
  private static let slotsOffset = 4096
  private static let slotCount = (Int(length) - slotsOffset) / 32
  private static let magic: UInt64 = 0x4655_4144_4f52_4d31

  private let base: UnsafeMutableRawPointer
  private let descriptor: Descriptor
  private var next = 0

  /// - Parameter descriptor: the worker's memfd. Its size must be sealed: if the worker could shrink the
  ///   file, reading the mapping could kill the daemon (SIGBUS).
  private init(mapping descriptor: Descriptor) throws(SystemCallError) {
    guard clinux_size_is_sealed(descriptor.raw, Self.length) == 1 else {
      throw SystemCallError("use", on: Self.name, code: EINVAL)
    }
    let address = try shim("mmap", on: Self.name) {
      clinux_map_shared(descriptor.raw, Int64(Self.length))
    }
    guard let area = UnsafeMutableRawPointer(bitPattern: Int(address)) else {
      throw SystemCallError("mmap", on: Self.name, code: EINVAL)
    }
    base = area
    self.descriptor = descriptor
  }

  deinit { munmap(base, Int(Self.length)) }

  /// Makes an empty file a journal.
  static func create(
    in descriptor: Descriptor, of process: ProcessIdentity, userfault: Int32, inode: UInt64
  ) throws(SystemCallError) -> FaultJournal {
    try shim("seal", on: name) { clinux_seal_size(descriptor.raw, length) }
    let journal = try FaultJournal(mapping: descriptor)
    let header = Header(process: process, userfault: userfault, inode: inode)
    for (index, word) in header.words.enumerated() { journal[word: index] = word }
    journal.phase = .idle
    return journal
  }

  /// Opens an earlier daemon's journal, ready to continue after its last message.
  static func adopt(_ descriptor: Descriptor) throws(SystemCallError) -> FaultJournal {
    let journal = try FaultJournal(mapping: descriptor)
    while journal.next < slotCount - 1, journal.slot(journal.next).pointee.event != 0 {
      journal.next += 1
    }
    return journal
  }

  // MARK: header

  struct Header {
    var process: ProcessIdentity
    var userfault: Int32
    var inode: UInt64

    fileprivate var words: [UInt64] {
      [
        FaultJournal.magic, 1, UInt64(process.pid), process.startTime, UInt64(userfault), inode,
      ]
    }

    init(process: ProcessIdentity, userfault: Int32, inode: UInt64) {
      self.process = process
      self.userfault = userfault
      self.inode = inode
    }

    fileprivate init?(_ words: [UInt64]) {
      guard words.count >= 6, words[0] == FaultJournal.magic, words[1] == 1 else { return nil }
      guard let pid = Int32(exactly: words[2]), let number = Int32(exactly: words[4]) else {
        return nil
      }
      self.init(
        process: ProcessIdentity(pid: pid, startTime: words[3]), userfault: number,
        inode: words[5])
    }
  }

  /// The journals among a process's descriptors, with their headers. A forked child has its parent's journals
  /// too.
  static func all(in pid: Int32) -> [(file: Descriptor, header: Header)] {
    let directory = "/proc/\(pid)/fd"
    // A process that has ended has no journals.
    return ((try? listDirectory(directory)) ?? []).compactMap { entry in
      guard readLink("\(directory)/\(entry)") == "/memfd:\(name) (deleted)",
        let file = open("\(directory)/\(entry)")
      else { return nil }
      var words = [UInt64](repeating: 0, count: 8)
      // A journal that can't be read belongs to another process or is closed.
      let count = words.withUnsafeMutableBytes { try? file.read(into: $0, at: 0) }
      guard count == 64, let header = Header(words) else { return nil }
      return (file, header)
    }
  }

  /// Opens a descriptor of the worker that has a journal's name. The name proves nothing: a worker can give
  /// it to a FIFO, which would block the daemon, or to a file of its own file system (FUSE), which may never
  /// answer. So the file is first referenced with O_PATH, which opens nothing. It is opened only if it lies
  /// on the file system of memfds.
  private static func open(_ link: String) -> Descriptor? {
    let held = clinux_open_place(link)
    guard held >= 0 else { return nil }
    let place = Descriptor(owning: held)
    guard clinux_is_memfd(place.raw) == 1 else { return nil }
    // A file that can't be opened counts as no journal.
    return try? Descriptor.open("/proc/self/fd/\(place.raw)", O_RDWR | O_NONBLOCK)
  }

  private subscript(word index: Int) -> UInt64 {
    get { base.load(fromByteOffset: index * 8, as: UInt64.self) }
    set { base.storeBytes(of: newValue, toByteOffset: index * 8, as: UInt64.self) }
  }

  var phase: Phase? {
    get { Phase(rawValue: self[word: 6]) }
    set { self[word: 6] = newValue?.rawValue ?? 0 }
  }

  /// True if a later daemon has begun to write to children that were forked while their pages were missing.
  var hasBegunChildren: Bool {
    get { self[word: 7] != 0 }
    set { self[word: 7] = newValue ? 1 : 0 }
  }

  // MARK: messages

  typealias Message = clinux_uffd_message

  /// Marks a moment when no change was under way: all messages before the mark are of earlier changes than
  /// all messages after it.
  private static let quiet: UInt8 = 0xf4

  private func slot(_ index: Int) -> UnsafeMutablePointer<Message> {
    (base + Self.slotsOffset + index * 32).assumingMemoryBound(to: Message.self)
  }

  /// Reads the next message of the userfaultfd. Page faults aren't kept.
  func read(from userfault: Userfault) throws(SystemCallError) -> Message? {
    // One slot stays free, as the end mark.
    guard next < Self.slotCount - 1 else {
      throw SystemCallError("read", on: "userfaultfd: its journal is full", code: ENOSPC)
    }
    let place = slot(next)
    // The write makes the page present before the kernel writes to it: a kill could interrupt a copy that
    // needs a new page.
    place.pointee.event = 0
    let got = try shim("read", on: "userfaultfd of pid \(userfault.pid)") {
      clinux_uffd_read(userfault.descriptor.raw, place)
    }
    if got == 0 { return nil }
    let message = place.pointee
    if Int(message.event) == CLINUX_UFFD_PAGEFAULT {
      place.pointee.event = 0
    } else {
      next += 1
    }
    return message
  }

  /// More than half of the slots are in use.
  var isHalfFull: Bool { next > Self.slotCount / 2 }

  func markQuiet() {
    guard next > 0, next < Self.slotCount - 1, slot(next - 1).pointee.event != Self.quiet else {
      return
    }
    slot(next).pointee.event = Self.quiet
    next += 1
  }

  /// Forked children that don't have all of their pages yet.
  var openForks: Int {
    (0..<next).count { Int(slot($0).pointee.event) == CLINUX_UFFD_FORK }
  }

  /// Records that the children of all forks so far have their pages.
  func forksAreDone() {
    for index in 0..<next where Int(slot(index).pointee.event) == CLINUX_UFFD_FORK {
      slot(index).pointee.event = UInt8(CLINUX_UFFD_FORK_DONE)
    }
  }

  /// All messages so far, in batches; within a batch the order isn't certain. `open` has the messages of a
  /// batch that hasn't ended.
  var batches: (closed: [[Message]], open: [Message]) {
    var closed: [[Message]] = []
    var open: [Message] = []
    for index in 0..<next {
      let message = slot(index).pointee
      if message.event == Self.quiet {
        closed.append(open)
        open = []
      } else {
        open.append(message)
      }
    }
    return (closed, open)
  }

  /// Empties the journal.
  func reset(to phase: Phase) {
    for index in 0..<next { slot(index).pointee = Message() }
    next = 0
    hasBegunChildren = false
    self.phase = phase
  }
}
