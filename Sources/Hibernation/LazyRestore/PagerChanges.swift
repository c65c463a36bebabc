import CLinux
import Glibc
import Linux

/// What the pager does when the worker drops or unmaps memory: the worker runs on.
///
/// The thread waits until the message is read. The order of such messages doesn't matter, because none of them says that memory
/// is somewhere else than before. If memory is moved, or copied by a fork, the order matters: then the worker is frozen first
/// (`drain`).
extension Pager {
  /// Reads the messages of changes until none is under way. Page faults that are read meanwhile are answered later.
  func settle(_ process: LazyProcess) throws {
    let deadline = Deadline(in: .seconds(10))
    while !process.isGone, process.userfault.hasEventInFlight {
      if isFrozen { return try drain(process) }
      if deadline.hasPassed {
        throw SystemCallError("settle", on: "userfaultfd of pid \(process.pid)", code: ETIMEDOUT)
      }
      // Its thread has sent the message and waits in its call, or hasn't run since the message was read.
      guard process.userfault.isReadable else {
        sched_yield()
        continue
      }
      // The kernel keeps the order of messages. So the first one can be a fork's or a move's only if its thread is already in
      // that call.
      if process.journal.isHalfFull || mayForkOrMove(process.pid) { return try drain(process) }
      if let received = try process.journal.read(from: process.userfault) {
        try receive(received, of: process)
      }
    }
  }

  /// Deals with one message that was read while the worker runs.
  func receive(_ received: FaultJournal.Received, of process: LazyProcess) throws {
    let message = received.message
    switch Int(message.event) {
    case CLINUX_UFFD_PAGEFAULT: process.faults.append(message.b & ~(pageSize - 1))
    case CLINUX_UFFD_UNMAP, CLINUX_UFFD_REMOVE:
      FaultPoint.eventRead.pass()
      try process.apply([message])
      process.journal.markQuiet()
    default:
      // Rare: a signal interrupted a thread that waited for a page, and another one forked or moved memory, between a look and
      // the reading.
      process.journal.markQuiet()
      try process.apply([message])
      try drain(process, ahead: received)
    }
  }

  /// Completes what an earlier pager has begun with the messages that it read last.
  func finish(_ process: LazyProcess) throws {
    // It had frozen the group before it read them, or the order doesn't matter.
    let isOnlyDropped = process.unfinished.allSatisfy {
      [CLINUX_UFFD_UNMAP, CLINUX_UFFD_REMOVE].contains(Int($0.event))
    }
    if isFrozen || !isOnlyDropped { return try drain(process) }
    let messages = process.unfinished
    process.unfinished = []
    try process.apply(messages)
    process.journal.markQuiet()
  }
}
