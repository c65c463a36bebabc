import CLinux
import Glibc
import Linux

/// How the pager handles dropped or unmapped memory: the worker runs on.
///
/// The thread waits until the message is read. The order of such messages doesn't matter, because
/// none of them moves memory to another address. If memory is moved, or copied by a fork, the order
/// matters: then the worker is frozen first (`drain`).
extension Pager {
  /// If several threads drop memory all the time, some message is always under way, and nothing can
  /// be filled. After this time the worker is frozen: that ends it.
  private static let longestStorm = Duration.seconds(2)

  /// Reads the messages of changes until none is under way. Page faults that are read meanwhile are
  /// answered later.
  func handlePendingEvents(of process: LazyProcess) throws {
    var deadline = Deadline(in: .seconds(10))
    let stormEnd = Deadline(in: Self.longestStorm)
    var pauses = BriefPauses()
    while !process.hasVanished, process.userfault.hasEventInFlight {
      process.wakeThreads()
      if isFrozen { return try drain(process) }
      if deadline.hasPassed, try !waitsOn(for: process) {
        throw SystemCallError("settle", on: "userfaultfd of pid \(process.pid)", code: ETIMEDOUT)
      }
      // The thread has sent the message and waits in its call, or hasn't run since the message was
      // read.
      guard process.userfault.isReadable else {
        // The message of locked memory that grows and moves comes after its new pages.
        if !process.faults.isEmpty, mayForkOrMove(process.pid) { return try drain(process) }
        pauses.next()
        continue
      }
      // The kernel keeps the order of messages. So the first one can be a fork's or a move's only
      // if its thread is already in that call.
      if process.journal.isHalfFull { _ = process.shortenJournal() }
      if process.journal.isHalfFull || stormEnd.hasPassed || mayForkOrMove(process.pid) {
        return try drain(process)
      }
      if let received = try process.journal.read(from: process.userfault) {
        try receive(received, of: process)
        deadline = Deadline(in: .seconds(10))
      }
    }
  }

  /// Handles one message that was read while the worker runs.
  func receive(_ received: FaultJournal.Received, of process: LazyProcess) throws {
    let message = received.message
    switch Int(message.event) {
    case CLINUX_UFFD_PAGEFAULT: process.faults.append(message.b & ~(pageSize - 1))
    case CLINUX_UFFD_UNMAP, CLINUX_UFFD_REMOVE:
      FaultPoint.eventRead.pass()
      try process.apply([message])
      process.journal.markQuiet()
    default:
      // This is rare: a signal interrupted a thread that waited for a page, and another thread
      // forked or moved memory, between the check and the reading.
      process.journal.markQuiet()
      try process.apply([message])
      try drain(process, early: received)
    }
  }

  /// Completes the messages that an earlier pager read last.
  func finish(_ process: LazyProcess) throws {
    // That pager had frozen the worker before it read them.
    if isFrozen { return try drain(process) }
    // The worker has run since: later messages are of later changes.
    let messages = process.unfinished
    process.unfinished = []
    process.journal.markQuiet()
    try process.apply(messages)
    let early = messages.last { ![CLINUX_UFFD_UNMAP, CLINUX_UFFD_REMOVE].contains(Int($0.event)) }
    if let early { try drain(process, early: FaultJournal.Received(message: early, child: nil)) }
  }
}
