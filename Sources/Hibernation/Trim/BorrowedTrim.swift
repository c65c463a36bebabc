import CLinux
import Glibc
import Linux

/// Calls of a running worker by borrowed threads: in each process a thread that waits calls
/// madvise(MADV_PAGEOUT), which is a trim, or opens a descriptor that records writes. It needs no
/// right beyond tracing the worker.
///
/// The worker stands still for some milliseconds, and runs again for at least as long, until all
/// is moved. If the daemon dies in between, the worker stays stopped, and the next daemon puts it
/// right (`Hibernator.repairTrim`): a borrowed thread loops in the scratch area until the stop
/// takes effect, and the record says what its registers were.
struct BorrowedTrim {
  let target: HibernationTarget
  let features: KernelFeatures
  /// The path of the record.
  let path: String
  let deadline: Deadline
  let boot: String
  /// The pages that are still to be moved; none, if descriptors are opened.
  private var pending: [ProcessIdentity: [PageRange]] = [:]
  /// The descriptors that were opened. `nil`: pages are moved.
  private var trackers: [ProcessIdentity: WriteTracker]?
  /// The longest time for which the worker stood still.
  private(set) var longestStop = Duration.zero
  /// True if a thread that was borrowed has no registers of its own. The worker's record says what
  /// they were.
  private(set) var hasLostThread = false
  /// The time of this stop's calls, in ns.
  private var calling: Int64 = 0
  /// The number of bytes to move in one stop. It adapts to the speed of the swap.
  private var bytesPerStop: UInt64 = 1 << 20

  /// The time that a stop's calls may take, in ns. With the stop itself it is about 15 ms.
  private static let callTime: Int64 = 8_000_000
  /// The worker is stopped so often in a row without a thread that can be borrowed, at most.
  private static let maxAttempts = 30

  private struct Seized {
    let session: TraceSession
    let memory: ProcessMemory
    let identity: ProcessIdentity
  }

  /// A thread that is about to be borrowed.
  private struct Loan {
    let seized: Seized
    let vdso: MemoryMapping
    let record: TrimRecord.Borrowed
    let pages: [PageRange]
  }

  init(
    _ target: HibernationTarget, _ features: KernelFeatures, record path: String,
    until deadline: Deadline
  ) throws(HibernationError) {
    (self.target, self.features) = (target, features)
    (self.path, self.deadline) = (path, deadline)
    boot = try attempt(.checking) { try BootMark.current() }
  }

  mutating func run(_ tree: ProcessTree) throws(HibernationError) {
    try attempt(.scanning) {
      for process in tree.processes {
        do throws(SystemCallError) {
          let pages = try SwappablePages.resident(of: process.pid, useScan: features.pagemapScan)
          if !pages.isEmpty { pending[process.identity] = pages }
        } catch { if !error.meansVanished { throw error } }
      }
    }
    try performStops()
  }

  /// Opens a descriptor that records writes in each of these processes. It has none for a process
  /// that has ended.
  mutating func openTrackers(
    in processes: [ProcessIdentity]
  ) throws(HibernationError) -> [ProcessIdentity: WriteTracker] {
    for process in processes { pending[process] = [] }
    trackers = [:]
    try performStops()
    return trackers ?? [:]
  }

  private mutating func performStops() throws(HibernationError) {
    var hasMoved = false
    var attempts = 0
    while !pending.isEmpty, !deadline.hasPassed, attempts < Self.maxAttempts {
      let stop: (moved: UInt64, time: Duration)
      do throws(HibernationError) {
        stop = try Thread.urgently { () throws(HibernationError) in try performStop() }
      } catch {
        // What is in swap by now stays there.
        if hasMoved, error.aftermath == .intact, error.phase != .waking, !hasLostThread { return }
        throw error
      }
      longestStop = max(longestStop, stop.time)
      attempts = stop.moved > 0 ? 0 : attempts + 1
      if stop.moved > 0 { hasMoved = true }
      pauseThread(for: max(stop.time, .milliseconds(5)))
    }
    if !hasMoved, !pending.isEmpty {
      throw HibernationError(.seizing, "busy: its processes never wait in a system call")
    }
  }

  // MARK: one stop

  private mutating func performStop() throws(HibernationError) -> (moved: UInt64, time: Duration) {
    let current = try attempt(.checking) { try target.discover() }
    try Hibernator.checkBorrowing(from: current)
    target.waits.willRest(current)
    let began = Clocks.monotonic
    let tree = try attempt(.stopping) {
      try ProcessTree.stopAll(
        root: target.root, session: target.session, cgroup: target.cgroup,
        until: Deadline(in: .seconds(1)))
    }
    FaultPoint.trimStopped.pass()
    target.waits.didRest(tree)
    target.waits.willWake(tree)
    let result = Result { () throws(HibernationError) in try moveSome(of: tree) }
    FaultPoint.trimContinuing.pass()
    let continued = Result { () throws(HibernationError) in
      try attempt(.waking) { try tree.continueAll() }
    }
    target.waits.didWake()
    let moved = try result.get()
    try continued.get()
    return (moved, .nanoseconds(Clocks.monotonic - began))
  }

  /// Seizes the stopped processes, and moves pages of those that have a waiting thread.
  private mutating func moveSome(of tree: ProcessTree) throws(HibernationError) -> UInt64 {
    var seized: [Seized] = []
    defer {
      for one in seized { target.correctTimeouts(one.session) }
      for one in seized { one.session.detach() }
    }
    for stat in tree.processes {
      if let one = try seize(stat.identity) { seized.append(one) }
    }
    let living = Set(tree.processes.map(\.identity))
    pending = pending.filter { living.contains($0.key) }
    let loans = try plan(seized)
    if loans.isEmpty { return 0 }
    let record = TrimRecord(
      boot: boot, root: target.root, stopped: tree.processes.map(\.identity),
      borrowed: loans.map(\.record))
    try attempt(.evicting) {
      try StateFile.replace(path, with: record.bytes, durability: .untilBoot)
    }
    FaultPoint.trimRecorded.pass()
    calling = 0
    var moved: UInt64 = 0
    // If a thread can't be given back, the record stays for the repair.
    for loan in loans {
      do throws(HibernationError) { moved += try perform(loan) } catch {
        if !hasLostThread { discardFile(path) }
        throw error
      }
    }
    FaultPoint.trimReturned.pass()
    discardFile(path)
    let rate = Double(moved) * Double(Self.callTime) / Double(max(1, calling))
    bytesPerStop = UInt64(min(max(rate, Double(1 << 20)), Double(8 << 20))) / pageSize * pageSize
    return moved
  }

  /// Seizes a stopped process; nil: it has ended.
  private func seize(_ process: ProcessIdentity) throws(HibernationError) -> Seized? {
    do {
      let session = try TraceSession.seize(process)
      do {
        try session.restartInterruptedSyscalls()
        return Seized(
          session: session, memory: try target.memory(of: process), identity: process)
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

  /// Chooses the pages for this stop, and the threads that move them.
  private mutating func plan(_ all: [Seized]) throws(HibernationError) -> [Loan] {
    var loans: [Loan] = []
    var room = bytesPerStop
    for seized in all where room > 0 {
      guard let pages = pending[seized.identity], let thread = seized.session.borrowable else {
        continue
      }
      try Eligibility.checkInjection(into: seized.session)
      let mappings = try attempt(.scanning) {
        try MemoryMapping.headers(of: seized.identity.pid)
      }
      guard let vdso = mappings.first(where: { $0.name == "[vdso]" }),
        let scratch = PagePlan.scratchAddress(in: mappings)
      else {
        throw HibernationError(
          .scanning, "process \(seized.identity.pid) has no vdso or no free address space",
          aftermath: .ineligible)
      }
      // Without one call for many ranges, each range costs some 20 µs.
      let (now, later) = pages.split(
        afterBytes: room, ranges: features.processMadviseSelf ? Injector.rangesPerCall : 128)
      if trackers == nil { pending[seized.identity] = later.isEmpty ? nil : later }
      room -= min(room, now.bytes)
      loans.append(
        Loan(
          seized: seized, vdso: vdso,
          record: TrimRecord.Borrowed(
            process: seized.identity, tid: thread.tid, signalMask: thread.signalMask,
            scratch: scratch, registers: thread.registers.storedWords), pages: now))
    }
    return loans
  }

  /// Borrows a thread, pages out, and gives the thread its registers again.
  private mutating func perform(_ loan: Loan) throws(HibernationError) -> UInt64 {
    do throws(TraceError) {
      var injector = try Injector(
        session: loan.seized.session, memory: loan.seized.memory, vdso: loan.vdso)
      do throws(TraceError) {
        try injector.mapScratch(at: loan.record.scratch, permitsTracing: features.permitsTracing)
        FaultPoint.trimBorrowed.pass()
        let began = Clocks.monotonic
        if trackers != nil {
          try openTracker(of: loan.seized.identity, with: injector)
        } else {
          try pageOut(loan.pages, with: &injector)
        }
        calling += Clocks.monotonic - began
        FaultPoint.trimAdvised.pass()
      } catch {
        try giveBack(&injector)
        throw error
      }
      try giveBack(&injector)
      return max(loan.pages.bytes, 1)
    } catch {
      // The other processes go on.
      if case .vanished = error { return 0 }
      if case .busy = error { return 0 }
      throw .from(error, in: .evicting)
    }
  }

  private mutating func openTracker(
    of process: ProcessIdentity, with injector: Injector
  ) throws(TraceError) {
    do {
      trackers?[process] = try injector.openWriteTracker {}
      pending[process] = nil
    } catch let error as TraceError { throw error } catch let error as SystemCallError {
      throw .call(error)
    } catch { throw .call(SystemCallError("userfaultfd", on: "\(process.pid)", code: EINVAL)) }
  }

  private mutating func giveBack(_ injector: inout Injector) throws(TraceError) {
    do throws(TraceError) { try injector.finish() } catch {
      if case .vanished = error { throw error }
      hasLostThread = true
      throw error
    }
  }

  private func pageOut(
    _ pages: [PageRange], with injector: inout Injector
  ) throws(TraceError) {
    var remaining = pages
    while !remaining.isEmpty {
      let done = try injector.advise(.pageOut, remaining, inOneCall: features.processMadviseSelf)
      remaining = remaining.split(afterBytes: done, ranges: .max).later
      // The kernel refuses a range that was locked or unmapped meanwhile.
      if !remaining.isEmpty { remaining.removeFirst() }
    }
  }
}

extension [PageRange] {
  /// Splits a set after a number of bytes or of ranges, whichever comes first.
  fileprivate func split(
    afterBytes bytes: UInt64, ranges count: Int
  ) -> (now: [PageRange], later: [PageRange]) {
    var result: (now: [PageRange], later: [PageRange]) = ([], [])
    var room = bytes
    for range in self {
      let (head, tail) = range.split(after: result.now.count < count ? room : 0)
      if !head.isEmpty { result.now.append(head) }
      if !tail.isEmpty { result.later.append(tail) }
      room -= head.length
    }
    return result
  }
}
