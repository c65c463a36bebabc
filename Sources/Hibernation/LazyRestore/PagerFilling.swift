import CLinux
import Glibc
import Linux

/// How the pager puts pages in place.
extension Pager {
  struct Unexpected: Error, CustomStringConvertible {
    let address: UInt64
    var description: String {
      "the page at 0x\(String(address, radix: 16)) should be missing and is present"
    }
  }

  /// The process whose pages are filled, or a child that it has just forked.
  final class Destination {
    let process: LazyProcess
    let userfault: Userfault
    let isChild: Bool
    /// A child's parent's layout before the changes that were made during the fork. It isn't known
    /// beforehand which of these changes the child has seen. `nil`: there were none.
    let before: PageLayout?
    /// Ranges that stay empty in a child.
    var wiped: [Range<UInt64>]
    /// The processes that a child has forked since.
    var children: [Destination] = []
    /// True if the process has no memory any more. A child outlives its parent.
    var isGone: Bool { !isChild && process.hasVanished }

    /// True if a page of a run stays empty.
    func wipes(_ address: UInt64, _ length: UInt64) -> Bool {
      wiped.contains { $0.overlaps(address..<(address + length)) }
    }

    init(_ process: LazyProcess) {
      self.process = process
      userfault = process.userfault
      (isChild, before, wiped) = (false, nil, [])
    }

    init(child: Userfault, of process: LazyProcess, before: PageLayout?, wiped: [Range<UInt64>]) {
      self.process = process
      userfault = child
      (isChild, self.before, self.wiped) = (true, before, wiped)
    }
  }

  /// Fills a chunk.
  ///
  /// - Parameter first: one of its pages, for which a thread waits. In a long chunk it is filled
  ///   before the others.
  func fill(
    _ source: ChunkReadAhead.Source, of process: LazyProcess, _ destination: Destination,
    first: UInt64? = nil
  ) throws {
    let chunk = source.chunk
    defer { if case .ready(let loaded) = source { readAhead?.recycle(loaded) } }
    // By the fork a child has got all pages that its parent had in place.
    if destination.isGone || process.done.contains(chunk) { return }
    let step = source.step
    let tracked = step.isInNextBase && process.tracker != nil
    let pages: UnsafeRawPointer
    if case .ready(let loaded) = source, let readAhead {
      pages = readAhead.pages(of: loaded)
    } else {
      let scratch = buffer(forChild: destination.isChild)
      pages = try retry.run { () throws(ImageError) in try scratch.load(step, of: image) }
    }
    if isTrimmed { try dropGuardPages(in: step.ranges, of: destination) }
    // A short chunk is in place as soon as one of its pages would be.
    if let first, step.length > ImageLayout.learningChunkLength, let offset = step.offset(of: first)
    {
      try fillRun(
        first, from: pages + offset, length: pageSize, tracked: tracked, in: destination)
      process.filled.insert(first)
    }
    var offset = 0
    for range in step.ranges {
      try fillRun(
        range.address, from: pages + offset, length: range.length, tracked: tracked,
        in: destination)
      offset += Int(range.length)
    }
    if !destination.isChild {
      process.done.insert(chunk)
      filled?(step.length)
    }
  }

  /// Counts pages as dropped that the process has made guard pages.
  private func dropGuardPages(in ranges: [PageRange], of destination: Destination) throws {
    let process = destination.process
    let guards = try retry.run { () throws(SystemCallError) in
      try process.guardPages(in: ranges)
    }
    if guards.isEmpty { return }
    // Another thread may have moved them there, and the image's pages away. The messages that are
    // under way show that. The messages of a child's parent are being handled already.
    if !destination.isChild {
      try handlePendingEvents(of: process)
    } else if process.userfault.hasEventInFlight {
      return
    }
    if !process.layout.hasMoves { drop(guards, of: process) }
  }

  /// Counts guard pages as dropped. A worker that has very many of them doesn't stay trimmed.
  func drop(_ guards: [PageRange], of process: LazyProcess) {
    if !process.drop(guards) { endTrim("it freed memory in too many places") }
  }

  /// Checks a page that should be missing and is present. Only an earlier pager or a fork can have
  /// put it there, or the process has made it a guard page (Linux 6.19). Otherwise its content is
  /// wrong, and the worker must not continue with it.
  ///
  /// - Returns: false if the image's page has another address by now.
  private func isFilled(
    _ original: UInt64, at address: UInt64, in destination: Destination
  ) throws -> Bool {
    if isContinuation || destination.isChild { return true }
    let process = destination.process
    let isGuard = try retry.run { () throws(SystemCallError) in
      try process.isGuardPage(address)
    }
    guard isGuard else { throw Unexpected(address: address) }
    // Another thread may have moved the guard page there.
    try handlePendingEvents(of: process)
    return process.layout.currentAddress(of: original) == address
  }

  /// True if the next hibernation needs to know whether the process writes to the chunk's pages.
  func tracks(_ chunk: Int, of process: LazyProcess) -> Bool {
    image.steps[chunk].isInNextBase && process.tracker != nil
  }

  /// Fills a run of the image's pages at their present addresses.
  func fillRun(
    _ original: UInt64, from source: UnsafeRawPointer, length: UInt64, tracked: Bool,
    in destination: Destination
  ) throws {
    let process = destination.process
    let deadline = Deadline(in: .seconds(10))
    let wakes = !fillsInOrder || destination.isChild
    var (done, singly) = (UInt64(0), destination.before != nil)
    while done < length, !destination.isGone {
      let (page, source) = (original + done, source + Int(done))
      let now = process.layout.currentRun(from: page, length - done)
      // The child may have been made before the page was dropped or moved.
      let earlier = destination.before?.currentAddress(of: page)
      guard let address = now.address ?? earlier else {
        done += destination.before == nil ? now.length : pageSize
        continue
      }
      // A page that was filled alone isn't filled again, because the program may have dropped it.
      if process.filled.contains(page) || destination.wipes(address, pageSize) {
        done += pageSize
        continue
      }
      let mayBeLong = !singly && !destination.wipes(address, now.length)
      let extent = mayBeLong ? process.unfilled(from: page, now.length) : pageSize
      let result = try retry.run { () throws(SystemCallError) in
        try destination.userfault.fill(
          address, extent, from: source, tracked: tracked, wakes: wakes)
      }
      switch result {
      case .filled(let count):
        if !wakes { process.leftAsleep(address, count) }
        done += count
      case .present:
        guard try isFilled(page, at: address, in: destination) else { continue }
        destination.userfault.wake(address, pageSize)
        done += pageSize
      case .notRegistered:
        // A mapping may end within the run.
        if extent > pageSize {
          singly = true
        } else if try earlier == address
          || fill(earlier, of: destination, from: source, until: deadline)
        {
          done += pageSize
        }
      case .eventFirst:
        if destination.isChild {
          try readEvent(of: destination, until: deadline)
        } else {
          try handlePendingEvents(of: process)
        }
      case .vanished:
        if destination.isChild { return }
        process.hasVanished = true
      }
    }
  }

  /// Fills a page at the address that it had before the last changes. Returns false if a message of
  /// a child was read first.
  private func fill(
    _ earlier: UInt64?, of child: Destination, from source: UnsafeRawPointer,
    until deadline: Deadline
  ) throws -> Bool {
    guard let earlier, !child.wipes(earlier, pageSize) else { return true }
    let result = try retry.run { () throws(SystemCallError) in
      try child.userfault.fill(earlier, pageSize, from: source, tracked: false)
    }
    if result == .eventFirst { try readEvent(of: child, until: deadline) }
    return result != .eventFirst
  }
}

/// How the pager fills all that is missing.
extension Pager {
  /// The time between two attempts to enter while a fill waits for its turn, in ms.
  private static let turnPollInterval = Int32(40)
  /// A fill of what is needed ends when no thread waits for a page for this time, in ms. On a busy
  /// machine a thread that was woken may need some ms before it runs.
  private static let unneeded = Int32(10)
  /// The number of bytes after which threads are woken if chunks are filled in order, at first and
  /// at most. It takes less than 1 ms to fill 256 KiB.
  private static let bytesInOrder = (first: 32 * 1024, greatest: 256 * 1024)
  /// The number of chunks (16 MB) after which another worker may fill.
  private static let chunksInTurn = 64

  /// Waits until this fill may use the processors. A halted worker doesn't wait.
  private func waitForTurn() throws {
    let began = Clocks.monotonic
    while !isFrozen, !hasTurn {
      hasTurn = FillTurns.shared.enter(after: .nanoseconds(Clocks.monotonic - began))
      if hasTurn { return }
      // Many fills may wait, so each frees its buffer.
      dropBuffers()
      try serveAll(wait: Self.turnPollInterval)
    }
  }

  private func leaveTurn() {
    if hasTurn { FillTurns.shared.leave() }
    hasTurn = false
  }

  /// The number of chunks that are in place.
  private var doneCount: Int { processes.reduce(0) { $0 + $1.done.count } }

  /// Fills all chunks that aren't in place yet.
  ///
  /// - Parameter whileNeeded: true ends the fill when no thread waits for a page for a while.
  func fillRemaining(whileNeeded: Bool = false) throws {
    let isFilled = processes.allSatisfy { $0.chunks.allSatisfy($0.done.contains) }
    if !isFilled { try waitForTurn() }
    defer { leaveTurn() }
    let chunks = processes.flatMap(\.missingChunks)
    let readAhead = ChunkReadAhead(image, chunks: chunks)
    readAhead.start()
    self.readAhead = readAhead
    defer {
      readAhead.finish()
      self.readAhead = nil
    }
    let doneBefore = doneCount
    var isHalfDone = false
    // The number of bytes since threads were woken, and the one after which they are woken.
    var (asleep, limit) = (0, Self.bytesInOrder.first)
    // True while a part is in place that no thread has asked for.
    var isAhead = false
    fillsInOrder = whileNeeded
    defer { endOrder() }
    while true {
      if !fillsInOrder || asleep >= limit {
        for process in processes { process.wakeThreads() }
        (asleep, limit) = (0, min(2 * limit, Self.bytesInOrder.greatest))
        // While the worker uses this part, the next one is filled.
        let isNeeded = try !isFrozen && serveAll(wait: isAhead ? Self.unneeded : 0)
        if whileNeeded, isFrozen || (isAhead && !isNeeded) { return }
        isAhead = whileNeeded && !isNeeded
        for process in processes { process.wakeThreads() }
        fillsInOrder = whileNeeded || sequentialUse.isSeen
      }
      if !isHalfDone, doneCount - doneBefore >= chunks.count / 2 {
        isHalfDone = true
        FaultPoint.filling.pass()
      }
      guard let next = readAhead.next() else { return }
      for process in processes where process.paged.index == next.step.process {
        try fill(next, of: process, Destination(process))
      }
      asleep += next.step.length
      if (doneCount - doneBefore) % Self.chunksInTurn == 0 {
        let fillsOn = fillsInOrder
        endOrder()
        leaveTurn()
        try waitForTurn()
        fillsInOrder = fillsOn
      }
    }
  }

  private func endOrder() {
    fillsInOrder = false
    for process in processes { process.wakeThreads() }
  }
}
