import CLinux
import Glibc
import Linux

/// How the pager handles forks and moves of memory, and how it ends.
extension Pager {
  /// Freezes the worker, then reads all messages until none is left. The worker stays frozen until
  /// all pages are in place, in forked children too. A trimmed worker's own missing pages stay in
  /// the image.
  ///
  /// - Parameter early: a message that was read before the freeze, which happens rarely. Its order
  ///   with the messages that are read now isn't known.
  func drain(_ process: LazyProcess, early: FaultJournal.Received? = nil) throws {
    try freeze()
    var batch = process.unfinished
    process.unfinished = []
    // The last reference to a child's userfaultfd is dropped at the end. Its memory is ordinary
    // then.
    var children = early?.child.map { [$0] } ?? []
    let (deadline, grown) = (Deadline(in: .seconds(10)), Deadline(in: .milliseconds(2)))
    var pauses = BriefPauses()
    while true {
      if let received = try nextMessage(of: process) {
        let message = received.message
        if Int(message.event) == CLINUX_UFFD_PAGEFAULT {
          let page = message.b & ~(pageSize - 1)
          // A trimmed worker doesn't get all pages, and the freeze doesn't end each wait.
          process.faults.append(page)
          if !isTrimmed { recordFault(page, of: process) }
        } else {
          batch.append(message)
          if let child = received.child { children.append(child) }
        }
        continue
      }
      if !process.userfault.hasEventInFlight { break }
      if grown.hasPassed, !process.faults.isEmpty { releaseGrowth(of: process) }
      if deadline.hasPassed, try !waitsOn(for: process) {
        throw SystemCallError("drain", on: "userfaultfd of pid \(process.pid)", code: ETIMEDOUT)
      }
      pauses.next()
    }
    FaultPoint.eventRead.pass()
    if let early { try checkOrder(of: early.message, batch, process) }
    let before = process.layout
    try process.apply(batch)
    if !children.isEmpty {
      let isUnchanged = batch.allSatisfy { Int($0.event) == CLINUX_UFFD_FORK }
      var destinations = try children.enumerated().map { index, child in
        // An early fork came before the other changes.
        let changes = index == 0 && early?.child != nil ? [] : batch
        return Destination(
          child: Userfault(descriptor: child, pid: process.pid), of: process,
          before: isUnchanged ? nil : before, wiped: try emptyInChildren(of: process, changes))
      }
      while let destination = destinations.popLast() {
        try fillAll(destination)
        destinations += destination.children
      }
      FaultPoint.childFilled.pass()
      process.journal.forksAreDone()
      limitForks(process, children.count)
    }
    process.journal.markQuiet()
  }

  /// Makes the new part of locked memory ordinary, if a thread that makes the memory longer and
  /// moves it (mremap) waits there for a page. The kernel puts the new pages in place before it
  /// sends the message of the move, and refuses to fill any page until that is read.
  private func releaseGrowth(of process: LazyProcess) {
    // After a failure the next turn of the drain tries again.
    guard let growths = try? growths(of: process.pid), !growths.isEmpty,
      let all = try? mappings(of: process.pid)
    else { return }
    for (before, added) in growths {
      for page in process.faults where before < page {
        let end = PageRange(address: page, length: added)
        let mayBeNew = all.contains {
          $0.mayHaveGrown(by: end, from: before, isEmpty: process.isEmpty)
        }
        // After a failure the next turn tries again.
        guard mayBeNew, (try? process.userfault.unregister(end)) != nil else { continue }
        process.faults.removeAll { page..<(page + added) ~= $0 }
      }
    }
  }

  /// Fills all missing pages of a child, as fast as possible: the worker stands still.
  private func fillAll(_ destination: Destination) throws {
    let process = destination.process
    // A chunk of the parent may be being filled.
    let outer = readAhead
    let chunks = ChunkReadAhead(image, chunks: process.missingChunks)
    chunks.start()
    readAhead = chunks
    defer {
      chunks.finish()
      readAhead = outer
    }
    while let next = chunks.next() { try fill(next, of: process, destination) }
  }

  /// Reads a message of a child that ran before the worker was frozen. While it waits to be read,
  /// no page of the child can be filled.
  func readEvent(of child: Destination, until deadline: Deadline) throws {
    let subject = "a child of pid \(child.process.pid)"
    var message = FaultJournal.Message()
    let count = try retry.run { () throws(SystemCallError) in
      try shim("read", on: subject) {
        clinux_uffd_read(child.userfault.descriptor.raw, &message)
      }
    }
    if count == 0 {
      if deadline.hasPassed { throw SystemCallError("fill", on: subject, code: ETIMEDOUT) }
      return pauseThread(for: .microseconds(20))
    }
    switch Int(message.event) {
    case CLINUX_UFFD_UNMAP, CLINUX_UFFD_REMOVE:
      child.wiped.append(message.a..<max(message.a, message.b))
    case CLINUX_UFFD_FORK:
      let descriptor = Descriptor(owning: Int32(truncatingIfNeeded: message.a))
      child.children.append(
        Destination(
          child: Userfault(descriptor: descriptor, pid: child.process.pid), of: child.process,
          before: child.before, wiped: child.wiped))
    case CLINUX_UFFD_REMAP:
      throw PageLayout.Ambiguous(
        description: "\(subject) moved memory before all of it was in place")
    default: break  // The thread that waits for a page is woken when the page is in place.
    }
  }

  /// Ends the trim of a worker whose children get more pages than a trim is worth.
  private func limitForks(_ process: LazyProcess, _ count: Int) {
    guard isTrimmed else { return }
    let length = process.missingChunks.reduce(0) { $0 + image.steps[$1].length } * count
    if forkCost.add(length, at: Clocks.monotonic) > ForkCost.limit { endTrim("it forks often") }
  }

  private func checkOrder(
    of early: FaultJournal.Message, _ batch: [FaultJournal.Message], _ process: LazyProcess
  ) throws {
    func isMapped(_ range: Range<UInt64>) throws -> Bool {
      try mappings(of: process.pid).contains { ($0.start..<$0.end).overlaps(range) }
    }
    if try batch.contains(where: { try PageLayout.mayPrecede($0, early, isMapped: isMapped) }) {
      throw PageLayout.Ambiguous(description: "two threads moved memory at once")
    }
  }

  /// Returns ranges that are empty in a child: those with MADV_WIPEONFORK, by which random
  /// generators detect forks, and memory that has grown into the place of other memory. A thread
  /// can do that and fork before the message is read that another thread has unmapped what was
  /// there. (If the fork came first, the child lacks what a thread has unmapped that it doesn't
  /// have.)
  private func emptyInChildren(
    of process: LazyProcess, _ batch: [FaultJournal.Message]
  ) throws -> [Range<UInt64>] {
    var mappings = try mappings(of: process.pid)
    let unmapped = PageLayout.unmapped(by: batch)
    let grown = mappings.filter { $0.flags.contains(.userfault) }.flatMap { mapping in
      unmapped.map { $0.clamped(to: mapping.start..<mapping.end) }
    }.filter { !$0.isEmpty }
    if mappings.isEmpty {
      // It was killed after the fork. Its child has the same flags, and only the memory of a new
      // child is registered.
      let recorded = Set(image.processes.map(\.identity))
      for stat in try retry.run({ try target.discover() }).processes
      where !recorded.contains(stat.identity) {
        let others = try self.mappings(of: stat.pid)
        if others.contains(where: { $0.flags.contains(.userfault) }) { mappings += others }
      }
    }
    return grown + mappings.filter { $0.flags.contains(.wipedOnFork) }.map { $0.start..<$0.end }
  }

  func freeze() throws {
    if isFrozen { return }
    // This doesn't wait for the freeze to complete: a thread that waits for the pager can't freeze.
    try retry.run { () throws(SystemCallError) in try cgroup.beginFreeze() }
    isFrozen = true
    halt = Halt(began: Clocks.monotonic)
  }

  /// Handles messages until none is in flight. All pages are filled then.
  func drainEvents() throws {
    for process in processes where !process.hasVanished {
      while process.userfault.hasEventInFlight { try handlePendingEvents(of: process) }
    }
  }

  // MARK: the end

  func tearDown() throws {
    let isFrozenForTracking = try freezeForTracking()
    for process in processes { process.journal.phase = .complete }
    for process in processes where !process.hasVanished {
      if isFrozenForTracking { try handOver(process) } else { try release(process) }
    }
    if isFrozenForTracking { checkHandOver() }
    FaultPoint.unregistered.pass()
    if isFrozen, !staysFrozen { try repairAndThaw() }
    FaultPoint.thawed.pass()
    beforeRemoval?()
    // The image is removed last: while it exists it is locked, and a new daemon waits for this
    // pager. Without the image, a new daemon might hibernate the worker again while this pager
    // still thaws or continues it.
    removeImage()
  }

  /// Commit B. A complete image becomes the base of the next one; an overlay's base stays.
  private func removeImage() {
    let base = ImageLayout.basePath(of: image.path)
    if let mustDropBase, mustDropBase() {
      keepsBase = false
      endTracking()
    }
    if keepsBase, image.reference == nil {
      do throws(SystemCallError) {
        try renameFile(image.path, to: base)
        FaultPoint.baseKept.pass()
        return
      } catch { keepsBase = false }  // The next image is complete then.
    }
    discardFile(image.path)
    FaultPoint.unlinked.pass()
    // The base is removed only now: the image was read together with it.
    if !keepsBase { discardFile(base) }
  }

  /// Makes all ranges ordinary memory again. A thread that forks or changes mappings meanwhile is
  /// released: no page was missing. The wait for it has no limit, because it may get no processor
  /// for long (`cpu.max`, a virtual machine that is paused). No event outlives its thread.
  func release(_ process: LazyProcess) throws {
    let busyEnd = Deadline(in: .seconds(1))
    try retry.run { () throws(SystemCallError) in try process.userfault.unregisterAll() }
    var pauses = BriefPauses()
    while true {
      while let received = try nextMessage(of: process) {
        if received.child != nil { process.journal.forksAreDone() }
      }
      if !process.userfault.hasEventInFlight { break }
      if busyEnd.hasPassed {
        // The list of mappings may have missed one that was being moved, and the thread that moves
        // locked memory waits there for a page.
        try retry.run { () throws(SystemCallError) in try process.userfault.unregisterAll() }
        pauseThread(for: .milliseconds(10))
      } else {
        pauses.next()
      }
    }
    // This covers a mapping that was moved during the loop.
    try retry.run { () throws(SystemCallError) in try process.userfault.unregisterAll() }
  }

  /// Repairs calls that the freeze would end with an EINTR that the program mustn't see, and thaws.
  ///
  /// - Parameter thawLimit: the greatest time for which all threads have to come to rest. If the
  ///   worker was only frozen to track its writes, they shouldn't wait long for the last one.
  func repairAndThaw(within thawLimit: Duration = .milliseconds(500)) throws {
    // The worker's memory is in place: a failure here costs at most an EINTR.
    let limit = halt == nil ? thawLimit : HibernationTarget.timeout
    let isAtRest = (try? cgroup.freeze(until: Deadline(in: limit))) != nil
    if isAtRest { target.restartInterruptedSyscalls() }
    try retry.run { try target.wake(isStopped: false, mastersLast: !isTrimmed) }
    if let began = halt?.began { halt?.length = Clocks.monotonic - began }
    isFrozen = false
  }
}

extension MemoryMapping {
  /// True if the end of it may be what a thread adds to a block of locked memory. Another thread
  /// can wait for a page of the image in a larger locked mapping: that page must not become zeros.
  ///
  /// - Parameters:
  ///   - end: the pages that are added.
  ///   - before: the block's length before.
  ///   - isEmpty: true for a page for which the image has nothing.
  func mayHaveGrown(
    by end: PageRange, from before: UInt64, isEmpty: (UInt64) -> Bool
  ) -> Bool {
    guard flags.isSuperset(of: [.locked, .userfault]), start <= end.address - before,
      end.address < self.end, end.length <= self.end - end.address
    else { return false }
    // A block can also move to where the image has memory, which is unmapped then. The message
    // about that comes later, too.
    return start == end.address - before || end.pages.allSatisfy(isEmpty)
  }
}
