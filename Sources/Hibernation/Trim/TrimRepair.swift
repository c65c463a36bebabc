import CLinux
import Glibc
import Linux

extension Hibernator {
  /// Puts a worker right whose daemon died while it trimmed it by borrowed threads: the threads get
  /// their registers and signal masks again, the scratch areas are unmapped, the processes
  /// continue, and the record is removed. Nothing is done if there is no record, or its processes
  /// have ended.
  ///
  /// Call it before the worker is adopted or continued.
  ///
  /// - Parameters:
  ///   - record: the path of the record.
  ///   - root: the worker's first process.
  /// - Throws: `HibernationError`, which leaves the worker as it was found. A thread that has run
  ///   its own code since isn't changed.
  public static func repairTrim(
    record path: String, of root: ProcessIdentity
  ) throws(HibernationError) {
    if !fileExists(path) { return }
    let record = try readTrimRecord(path, of: root)
    guard let record else {
      discardFile(path)
      return
    }
    // What this thread can't detach, the kernel detaches when it ends.
    let result = BriefTracer.perform { () -> Result<Void, HibernationError> in
      do throws(HibernationError) {
        try TrimRepair(record: record).run { discardFile(path) }
        return .success(())
      } catch { return .failure(error) }
    }
    guard let result else {
      throw HibernationError(.seizing, "no thread could be started to put it right after a trim")
    }
    try result.get()
  }

  /// Reads the record; nil if all of its processes have ended.
  private static func readTrimRecord(
    _ path: String, of root: ProcessIdentity
  ) throws(HibernationError) -> TrimRecord? {
    do {
      let record = try TrimRecord(parsing: readFile(path))
      guard try record.boot == BootMark.current() else { return nil }
      if record.stopped.allSatisfy(\.hasEnded) { return nil }
      guard record.root == root else {
        throw TrimRecord.Damaged(description: "it is of another worker")
      }
      return record
    } catch {
      // The processes that it describes have ended with that boot.
      if BootMark.isOfEarlierBoot(path) { return nil }
      throw HibernationError(
        .reading,
        "the record \(path) of an interrupted trim can't be used (\(error)), so a thread of the "
          + "worker may have foreign registers: end it with `kill -9 \(root.pid)`, or remove the "
          + "record to let it run")
    }
  }
}

/// The repair of one worker. It runs on a thread of its own, which traces.
private struct TrimRepair {
  let record: TrimRecord

  private struct Seized {
    let session: TraceSession
    let memory: ProcessMemory
    /// The thread that was borrowed; nil: none of this process.
    let borrowed: TrimRecord.Borrowed?
  }

  /// - Parameter repaired: called when all threads have their own registers, before the processes
  ///   continue.
  func run(_ repaired: () -> Void) throws(HibernationError) {
    let living = record.stopped.filter { !$0.hasEnded }
    let running = runningAfterStops(living)
    do throws(HibernationError) {
      try stop(living)
      var seized: [Seized] = []
      defer { for one in seized { one.session.detach() } }
      for process in living {
        if let one = try seize(process) { seized.append(one) }
      }
      FaultPoint.trimRepairing.pass()
      for one in seized { try giveBack(one) }
      repaired()
      for one in seized {
        // A failure costs at most an EINTR.
        try? one.session.restartInterruptedSyscalls()
      }
    } catch {
      // It stays as it was found.
      for process in running.reversed() { _ = try? process.signal(SIGCONT) }
      throw error
    }
    for process in living.reversed() {
      try attempt(.waking) { _ = try process.signal(SIGCONT) }
    }
  }

  /// Returns the processes that aren't stopped. A process whose tracer has just died seems to run
  /// for some milliseconds before it is stopped again.
  private func runningAfterStops(_ processes: [ProcessIdentity]) -> [ProcessIdentity] {
    var running = processes
    _ = waitUntil(Deadline(in: .milliseconds(50))) { () throws(Never) in
      running = running.filter { process in
        // A process that can't be examined counts as running, and is continued as such.
        guard let stat = try? ProcessStat.read(process.pid) else { return true }
        return stat.state != .stopped
      }
      return running.isEmpty
    }
    return running
  }

  private func stop(_ processes: [ProcessIdentity]) throws(HibernationError) {
    try attempt(.stopping) {
      for process in processes { _ = try process.signal(SIGSTOP) }
      for process in processes {
        // If its state can't be read, it has ended meanwhile.
        guard let stat = try? ProcessStat.read(process.pid), stat.identity == process else {
          continue
        }
        try ProcessTree.waitForRest(stat, until: Deadline(in: .seconds(5)))
      }
    }
  }

  /// Seizes a stopped process; nil: it has ended.
  private func seize(_ process: ProcessIdentity) throws(HibernationError) -> Seized? {
    do {
      let session = try TraceSession.seize(process)
      do {
        return Seized(
          session: session, memory: try ProcessMemory(of: process),
          borrowed: record.borrowed.first { $0.process == process })
      } catch {
        session.detach()
        throw error
      }
    } catch {
      let error = HibernationError.from(error, in: .seizing)
      if error.aftermath == .vanished { return nil }
      throw error
    }
  }

  private func giveBack(_ seized: Seized) throws(HibernationError) {
    let session = seized.session
    guard let borrowed = seized.borrowed, let thread = borrowed.thread else { return }
    let mappings = try attempt(.checking) { try MemoryMapping.headers(of: session.pid) }
    let scratch = borrowed.scratchRange
    let overlapping = mappings.filter { $0.range.intersects(scratch) }
    let isMapped = overlapping.contains {
      $0.range == scratch && $0.executable && !$0.writable && !$0.hasFile
    }
    // The program has mapped something else there, so it has run.
    if !overlapping.isEmpty, !isMapped { return }
    guard let current = session.threads.first(where: { $0.tid == thread.tid }),
      try attempt(
        .checking,
        {
          try isBorrowed(
            current, before: thread, scratch: scratch, memory: seized.memory, mappings: mappings)
        })
    else { return }
    do {
      if isMapped { try Eligibility.checkInjection(into: session) }
      try session.giveBack(thread)
      guard isMapped else { return }
      var injector = try Injector(
        session: session, memory: seized.memory, leftBehind: scratch, borrowing: thread.tid)
      FaultPoint.borrowedAgain.pass()
      try injector.finish()
    } catch {
      let error = HibernationError.from(error, in: .seizing)
      if error.aftermath != .vanished { throw error }
    }
  }

  /// Whether the thread doesn't have its own state, or has it and hasn't run since.
  private func isBorrowed(
    _ current: TracedThread, before thread: TracedThread, scratch: PageRange,
    memory: ProcessMemory, mappings: [MemoryMapping]
  ) throws(TraceError) -> Bool {
    if current.registers.isLike(thread.registers) { return true }
    let address = current.registers.instruction
    if Injector.parkingAddresses(scratch: scratch.address).contains(address) { return true }
    guard let vdso = mappings.first(where: { $0.name == "[vdso]" }) else { return false }
    let all = try Injector.addresses(
      vdso: vdso, memory: memory, scratch: scratch.address, pid: memory.pid)
    // The program can be at the vdso's instruction itself, but it never blocks all signals there.
    let unmaskable: UInt64 = 1 << (SIGKILL - 1) | 1 << (SIGSTOP - 1)
    return all.contains(address) && current.signalMask | unmaskable == ~0
  }
}
