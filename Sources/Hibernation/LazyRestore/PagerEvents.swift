import CLinux
import Glibc
import Linux

/// What the pager does when the worker forks or changes its mappings, and at the end.
extension Pager {
  /// Reads all messages until none is on its way, the worker frozen first. From here on it stays
  /// frozen until everything is in place.
  ///
  /// - Parameter ahead: one that has been read before the freezing, by a rare accident. What its
  ///   order with those that come now is can't be told.
  func drain(_ process: LazyProcess, ahead: FaultJournal.Message? = nil) throws {
    try freeze()
    var batch = process.unfinished
    process.unfinished = []
    let deadline = Deadline(in: .seconds(10))
    while true {
      if let message = try process.journal.read(from: process.userfault) {
        if Int(message.event) == CLINUX_UFFD_PAGEFAULT {
          process.touched.insert(message.b & ~(pageSize - 1))
        } else {
          batch.append(message)
        }
        continue
      }
      if !process.userfault.hasEventInFlight { break }
      if deadline.hasPassed {
        throw SystemCallError("drain", on: "userfaultfd of pid \(process.pid)", code: ETIMEDOUT)
      }
      sched_yield()
    }
    FaultPoint.eventRead.pass()
    let children = (batch + (ahead.map { [$0] } ?? [])).filter { Int($0.event) == CLINUX_UFFD_FORK }
      .map {
        Userfault(
          descriptor: Descriptor(owning: Int32(truncatingIfNeeded: $0.a & 0xffff_ffff)),
          pid: process.pid)
      }
    if let ahead, Int(ahead.event) == CLINUX_UFFD_REMAP,
      batch.contains(where: { Int($0.event) == CLINUX_UFFD_REMAP })
    {
      throw PageLayout.Ambiguous(description: "two threads moved memory at once")
    }
    let before = process.layout
    try process.layout.apply(batch)
    let wiped = children.isEmpty ? [] : try wipedOnFork(process)
    for child in children {
      let destination = Destination(child: child, of: process, before: before, wiped: wiped)
      for chunk in process.chunks { try fill(chunk, of: process, destination) }
    }
    if !children.isEmpty { halt?.isForFork = true }
    // The last reference to a child's userfaultfd goes here: its memory is ordinary from now on.
    if !children.isEmpty { process.journal.forksAreDone() }
    process.journal.markQuiet()
  }

  /// What a child has got empty (MADV_WIPEONFORK): random generators notice forks by that.
  private func wipedOnFork(_ process: LazyProcess) throws -> [Range<UInt64>] {
    try MemoryMapping.all(of: process.pid).filter { $0.flags.contains(.wipedOnFork) }.map {
      $0.start..<$0.end
    }
  }

  private func freeze() throws {
    if isFrozen { return }
    // Not waited for: somebody who waits for us can't freeze.
    try writeControl("\(cgroup.path)/cgroup.freeze", "1")
    isFrozen = true
    beginHalt()
  }

  /// Nothing is on its way, and everything is filled.
  func drainEvents() throws {
    for process in processes where !process.isGone {
      while process.userfault.hasEventInFlight { try drain(process) }
    }
  }

  // MARK: the end

  func tearDown() throws {
    for process in processes { process.journal.phase = .complete }
    for process in processes where !process.isGone { try release(process) }
    FaultPoint.unregistered.pass()
    if isFrozen { try mendAndThaw() }
    FaultPoint.thawed.pass()
    // Last of all: as long as it is there, it is locked, and a new daemon waits for us. Without it,
    // that one might hibernate the worker anew while we still thaw it.
    discardFile(image.path)
    FaultPoint.unlinked.pass()
  }

  /// Makes all of it ordinary memory again. Whoever forks or the like meanwhile is let go on:
  /// everything was there.
  private func release(_ process: LazyProcess) throws {
    let deadline = Deadline(in: .seconds(10))
    try process.userfault.unregisterAll()
    while true {
      while let message = try process.journal.read(from: process.userfault) {
        if Int(message.event) == CLINUX_UFFD_FORK {
          close(Int32(truncatingIfNeeded: message.a & 0xffff_ffff))
          process.journal.forksAreDone()
        }
      }
      if !process.userfault.hasEventInFlight { break }
      if deadline.hasPassed {
        throw SystemCallError("release", on: "userfaultfd of pid \(process.pid)", code: ETIMEDOUT)
      }
      sched_yield()
    }
    // A mapping that was moved while we looked.
    try process.userfault.unregisterAll()
  }

  /// The freezing gave some calls an EINTR that the program mustn't see.
  private func mendAndThaw() throws {
    // Its memory is in place: whatever goes wrong here costs an EINTR at most.
    let isAtRest = (try? cgroup.freeze(until: Deadline(in: HibernationTarget.patience))) != nil
    if isAtRest { target.restartInterruptedSyscalls() }
    workAtThaw = cgroup.cpuMicroseconds()
    try target.wake(isStopped: false)
    if let began = halt?.began { halt?.length = Clocks.monotonic - began }
    isFrozen = false
  }
}
