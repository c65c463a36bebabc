import CLinux
import Glibc
import Linux

/// Fills the missing pages of a running worker: first those that it waits for, then all others.
///
/// What makes it safe:
/// - The worker holds the userfaultfds too. If the pager dies, the worker waits at the next missing page
///   until a new daemon continues from the image and the journals.
/// - A worker that moves or drops memory waits until its message is read, and runs on then.
/// - A worker that forks is frozen before its message is read: no instruction of the worker or of the child runs
///   until all pages are in their places, in the child too. Only the pager holds a child's userfaultfd. If
///   the pager dies then, the journal shows it, and the child stays frozen.
/// - Nothing is filled while a message waits to be read: the kernel refuses that. So each page is filled where it
///   belongs at that moment.
/// - A page is filled once. If it is missing after that, the program has dropped it itself.
///
/// Used on one thread.
final class Pager {
  let image: ImageReader
  let target: HibernationTarget
  let cgroup: WorkerCgroup
  private(set) var processes: [LazyProcess]
  private let scratch: ChunkBuffer
  /// A second buffer, for forked children: they appear while the first one holds a chunk of their parent.
  let childScratch: ChunkBuffer
  /// An earlier pager has begun the fill and died.
  private let goesOnForAnother: Bool
  /// The group has been frozen by this pager or (in a recovery) by an earlier daemon.
  var isFrozen: Bool
  /// Set if the worker was halted because it forked.
  var halt: Halt?
  /// Called with the length of each chunk that is in place.
  var filled: ((Int) -> Void)?
  /// How long threads waited for pages, in ns.
  private(set) var waited: Int64 = 0

  struct Unexpected: Error, CustomStringConvertible {
    let address: UInt64
    var description: String {
      "the page at 0x\(String(address, radix: 16)) should be missing and is present"
    }
  }

  /// How the working set is learned from faults, and for how long.
  struct Learning: Sendable {
    /// At first only pages that a thread waits for are filled, one by one, so that each use is seen.
    var isLearning: Bool
    var length: Duration = .milliseconds(150)
    var quiet: Duration = .milliseconds(50)
    /// A worker that needs more than these pages at once gets whole chunks from then on: one by one, they take longer than all of
    /// its memory at once. 2 MiB.
    var limit = 512
  }

  init(
    image: ImageReader, target: HibernationTarget, cgroup: WorkerCgroup,
    parts: [PagerPart], isFrozen: Bool, goesOnForAnother: Bool
  ) throws {
    self.goesOnForAnother = goesOnForAnother
    self.image = image
    self.target = target
    self.cgroup = cgroup
    self.isFrozen = isFrozen
    scratch = try ChunkBuffer()
    childScratch = try ChunkBuffer()
    processes = try parts.map { try LazyProcess($0, image) }
  }

  /// Runs until no page is missing any more, and removes the image (commit B).
  func run(_ learning: Learning?) throws {
    // An earlier pager has filled everything.
    if processes.contains(where: { $0.journal.phase == .complete }) { return try tearDown() }
    for process in processes where !process.unfinished.isEmpty { try finish(process) }
    if let learning, learning.isLearning, !isFrozen { try learnWorkingSet(learning) }
    // The worker's first answer is under way, and needs the processors and the memory bandwidth.
    let grace = Clocks.monotonic + 5_000_000
    while !isFrozen, Clocks.monotonic < grace { try serveAll(wait: 1) }
    for process in processes {
      for (number, chunk) in process.chunks.enumerated() {
        if !isFrozen { try serveAll(wait: 0) }
        if number == process.chunks.count / 2 { FaultPoint.filling.pass() }
        try fill(chunk, of: process, Destination(process))
      }
    }
    try drainEvents()
    FaultPoint.filled.pass()
    try tearDown()
  }

  // MARK: faults

  /// Fills only pages that a thread waits for, until no more faults come.
  private func learnWorkingSet(_ learning: Learning) throws {
    let end = Clocks.monotonic + learning.length.nanoseconds
    var last = Clocks.monotonic
    while !isFrozen, Clocks.monotonic < end {
      if try serveAll(wait: 5, singly: true) { last = Clocks.monotonic }
      if Clocks.monotonic - last > learning.quiet.nanoseconds { return }
      if processes.reduce(0, { $0 + $1.touched.count }) > learning.limit { return }
    }
  }

  /// Fills the pages for all waiting threads. Returns true if a thread waited.
  @discardableResult
  private func serveAll(wait: Int32, singly: Bool = false) throws -> Bool {
    var polled = processes.map {
      pollfd(fd: $0.userfault.descriptor.raw, events: Int16(POLLIN), revents: 0)
    }
    let isWaiting = processes.contains { !$0.faults.isEmpty }
    guard poll(&polled, nfds_t(polled.count), isWaiting ? 0 : wait) > 0 || isWaiting else {
      return false
    }
    let began = Clocks.monotonic
    for (process, result) in zip(processes, polled)
    where result.revents & Int16(POLLIN) != 0 || !process.faults.isEmpty {
      try serve(process, singly: singly)
    }
    waited += Clocks.monotonic - began
    return true
  }

  private func serve(_ process: LazyProcess, singly: Bool) throws {
    while !process.isGone {
      try settle(process)
      // All pages are filled while the worker is frozen.
      if isFrozen { return }
      if let page = process.faults.popLast() {
        try answer(page, process, singly: singly)
      } else if let message = try process.journal.read(from: process.userfault) {
        try receive(message, process)
      } else {
        return
      }
    }
  }

  /// Fills what belongs at an address for which a thread waits. If that changes meanwhile, it is looked at once more.
  private func answer(_ page: UInt64, _ process: LazyProcess, singly: Bool) throws {
    process.touched.insert(page)
    var changes: Int
    repeat {
      changes = process.changes
      try fillAnswer(page, process, singly: singly)
    } while process.changes != changes && !process.isGone && !isFrozen
  }

  private func fillAnswer(_ page: UInt64, _ process: LazyProcess, singly: Bool) throws {
    if let original = process.layout.original(of: page), let chunk = process.chunk(with: original),
      !process.done.contains(chunk), !process.filled.contains(original)
    {
      if singly {
        let (source, _) = try process.cached(chunk, page: original, of: image, buffer: scratch)
        try place(original, from: source, length: pageSize, in: Destination(process))
        process.filled.insert(original)
        return
      }
      return try fill(chunk, of: process, Destination(process))
    }
    // The page was never in the image, or the program has dropped it since.
    switch try patiently({ () throws(SystemCallError) in try process.userfault.fillZero(page) }) {
    case .present: process.userfault.wake(page, pageSize)
    case .eventFirst:
      process.faults.append(page)
      try settle(process)
    case .vanished: process.isGone = true
    case .filled, .notRegistered: break
    }
  }

  // MARK: filling

  /// Where pages are filled: in a process, or in a child that it has just forked.
  struct Destination {
    let process: LazyProcess
    let userfault: Userfault
    /// For a child: its parent's layout before the changes that were made during the fork. It isn't known
    /// beforehand which of these changes the child has seen.
    let before: PageLayout?
    /// Ranges that stay empty in a child.
    var wiped: [Range<UInt64>] = []
    var isChild: Bool { before != nil }

    init(_ process: LazyProcess) {
      self.process = process
      userfault = process.userfault
      before = nil
    }

    init(child: Userfault, of process: LazyProcess, before: PageLayout, wiped: [Range<UInt64>]) {
      self.process = process
      self.wiped = wiped
      userfault = child
      self.before = before
    }
  }

  func fill(_ chunk: Int, of process: LazyProcess, _ destination: Destination) throws {
    // A child has got by the fork all pages that its parent had in place.
    if process.isGone || process.done.contains(chunk) { return }
    let buffer = destination.isChild ? childScratch : scratch
    let pages = try buffer.load(image.chunks[chunk], of: image)
    var offset = 0
    for range in image.chunks[chunk].ranges {
      try place(range.address, from: pages + offset, length: range.length, in: destination)
      offset += Int(range.length)
    }
    if !destination.isChild {
      process.done.insert(chunk)
      filled?(image.chunks[chunk].length)
    }
  }

  /// Fills a run of the image's pages at their present addresses.
  private func place(
    _ original: UInt64, from source: UnsafeRawPointer, length: UInt64, in destination: Destination
  ) throws {
    let process = destination.process
    let deadline = Deadline(in: .seconds(10))
    var done: UInt64 = 0
    var singly = false
    while done < length, !process.isGone {
      let page = original + done
      let now = process.layout.now(page, length - done)
      guard let address = now.address else {
        done += now.length
        continue
      }
      if destination.wiped.contains(where: { $0.contains(address) }) {
        done += pageSize
        continue
      }
      // A page that was filled alone isn't filled again, because the program may have dropped it.
      if process.filled.contains(page) {
        done += pageSize
        continue
      }
      let mayBeLong = !singly && (!destination.isChild || process.layout.isIdentity)
      let extent = mayBeLong ? process.unfilled(from: page, now.length) : pageSize
      let result = try patiently { () throws(SystemCallError) in
        try destination.userfault.fill(address, extent, from: source + Int(done))
      }
      switch result {
      case .filled(let count): done += count
      case .present:
        // Only an earlier pager or a fork can have put the page there. Otherwise its content is wrong, and
        // the worker must not continue with it.
        guard goesOnForAnother || destination.isChild else { throw Unexpected(address: address) }
        destination.userfault.wake(address, pageSize)
        done += pageSize
      case .notRegistered:
        // A mapping may end within the run.
        if extent > pageSize {
          singly = true
          continue
        }
        if let earlier = destination.before?.now(page), earlier != address {
          _ = try destination.userfault.fill(earlier, pageSize, from: source + Int(done))
        }
        done += pageSize
      case .eventFirst:
        if !destination.isChild {
          try settle(process)
        } else if deadline.hasPassed {
          throw SystemCallError("fill", on: "a child of pid \(process.pid)", code: ETIMEDOUT)
        }
      case .vanished:
        if destination.isChild { return }
        process.isGone = true
      }
    }
  }

  /// Tries again while memory is short.
  private func patiently(
    _ body: () throws(SystemCallError) -> Userfault.Filling
  ) throws -> Userfault.Filling {
    var attempts = 0
    while true {
      do throws(SystemCallError) { return try body() } catch {
        attempts += 1
        guard error.code == ENOMEM, attempts < 500 else { throw error }
        pauseThread(for: .milliseconds(10))
      }
    }
  }
}

extension Duration {
  fileprivate var nanoseconds: Int64 {
    components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000
  }
}
