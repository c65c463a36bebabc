import CLinux
import Glibc
import Linux

/// What the pager does when the worker moves, drops or unmaps memory: the worker runs on.
///
/// Such a change is complete, or can't be undone any more, when its message is sent, and its thread waits until the message is
/// read. Messages of one thread come in their order. Those of several threads may come in another order than their changes were
/// made in: see `order`.
extension Pager {
  /// Reads the messages of changes until none is under way. Page faults that are read meanwhile are answered later.
  ///
  /// If a thread may fork, or if the journal has little room, the worker is frozen until all pages are in place.
  func settle(_ process: LazyProcess) throws {
    let deadline = Deadline(in: .seconds(10))
    while !process.isGone {
      guard process.userfault.hasEventInFlight else { return process.noChangeIsUnderWay() }
      if isFrozen { return try drain(process) }
      if deadline.hasPassed {
        throw SystemCallError("settle", on: "userfaultfd of pid \(process.pid)", code: ETIMEDOUT)
      }
      // Its thread has sent the message and waits in its call, or hasn't run since the message was read.
      guard process.userfault.isReadable else {
        sched_yield()
        continue
      }
      // The kernel keeps the order of messages. So the first one can be a fork's only if its thread is already in that call.
      let calls = MemoryCalls(of: process.pid)
      if process.journal.isHalfFull || calls.mayFork { return try drain(process) }
      if let message = try process.journal.read(from: process.userfault) {
        try receive(message, process, during: calls)
      }
    }
  }

  /// Deals with one message that was read while the worker runs.
  func receive(
    _ message: FaultJournal.Message, _ process: LazyProcess, during calls: MemoryCalls? = nil
  ) throws {
    switch Int(message.event) {
    case CLINUX_UFFD_PAGEFAULT: process.faults.append(message.b & ~(pageSize - 1))
    // Rare: a signal interrupted a thread that waited for a page, and another thread forked, between a look and the reading.
    case CLINUX_UFFD_FORK: try drain(process, ahead: message)
    default:
      FaultPoint.eventRead.pass()
      try order([process.change(message, calls)], of: process)
      process.journal.markOrdered()
    }
  }

  /// Records changes, which were reported after all that are recorded already.
  ///
  /// A change is made, and then its message is sent. Between the two another thread can move memory to the place that has just
  /// become free, and its message may come first. Then the memory is at that place now, in a mapping that is registered. If the
  /// change was the later one, nothing registered is there, or another move's message is still to come that says so.
  func order(_ batch: [LazyProcess.Change], of process: LazyProcess) throws {
    let contested = try process.moves.flatMap { move in
      try batch.flatMap { change in
        // A thread's own changes come in their order.
        change.thread != nil && change.thread == move.thread
          ? [] : try registered(change.sources, at: move.move.to, in: process)
      }
    }
    if contested.isEmpty { return try process.apply(batch) }
    if batch.allSatisfy({ [$0.message].moves.isEmpty }) {
      return try process.apply(batch, except: contested)
    }
    // The place of a move's source must be the earlier move's, and not that of a third one.
    guard process.moves.count == 1, !anotherIsReported(by: process) else {
      throw PageLayout.Ambiguous(description: "two threads moved memory at once")
    }
    try process.applyAgain()
  }

  /// Waits until no change is under way; true if another message comes before that.
  private func anotherIsReported(by process: LazyProcess) -> Bool {
    let deadline = Deadline(in: .seconds(10))
    while process.userfault.hasEventInFlight {
      if process.userfault.isReadable || deadline.hasPassed { return true }
      sched_yield()
    }
    return false
  }

  /// The parts of `sources` inside of `target` that are in registered mappings now.
  private func registered(
    _ sources: [Range<UInt64>], at target: Range<UInt64>, in process: LazyProcess
  ) throws -> [Range<UInt64>] {
    let places = sources.filter { $0.overlaps(target) }.map { $0.clamped(to: target) }
    if places.isEmpty { return [] }
    return try MemoryMapping.all(of: process.pid).filter { $0.flags.contains(.userfault) }.flatMap {
      mapping in
      places.map { $0.clamped(to: mapping.start..<mapping.end) }.filter { !$0.isEmpty }
    }
  }

  /// Completes what an earlier pager has begun with the messages that it read last.
  func finish(_ process: LazyProcess) throws {
    // It had frozen the group before it read them.
    if isFrozen { return try drain(process) }
    let messages = process.unfinished
    process.unfinished = []
    try order(messages.map { LazyProcess.Change(message: $0) }, of: process)
    process.journal.markOrdered()
  }
}

extension LazyProcess {
  /// A change of mappings.
  struct Change {
    var message: FaultJournal.Message
    /// The thread that made it, if that is known.
    var thread: Int32?

    /// What is unmapped, or moved away. Memory that is only dropped (madvise) isn't: the kernel drops it after the message is
    /// read.
    var sources: [Range<UInt64>] {
      switch Int(message.event) {
      case CLINUX_UFFD_UNMAP: [message.a..<max(message.a, message.b)]
      case CLINUX_UFFD_REMAP: [message.a..<max(message.a, message.a &+ message.c)]
      default: []
      }
    }
  }

  /// A move and the thread that made it, if that is known.
  struct KnownMove {
    var move: PageLayout.Move
    var thread: Int32?
  }

  func change(_ message: FaultJournal.Message, _ calls: MemoryCalls?) -> Change {
    Change(message: message, thread: calls?.thread(changing: message.a))
  }

  /// Records unmapped memory without parts of it that another thread has moved memory to.
  func apply(_ batch: [Change], except parts: [Range<UInt64>]) throws {
    let messages = batch.flatMap { change -> [FaultJournal.Message] in
      guard Int(change.message.event) == CLINUX_UFFD_UNMAP else { return [change.message] }
      return change.sources.flatMap { PageLayout.subtract(parts, from: $0) }.map { range in
        var message = change.message
        (message.a, message.b) = (range.lowerBound, range.upperBound)
        return message
      }
    }
    try journal.replaceOpenBatch(with: messages)
    try apply(messages.map { Change(message: $0) })
  }
}
