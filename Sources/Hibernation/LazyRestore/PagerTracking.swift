import CLinux
import Glibc
import Linux

/// How the tracking of writes is handed over when all pages are in place. Until then the process's
/// own userfaultfd has recorded writes; from then on a `WriteTracker` does. A mapping can be
/// registered with one of them only, so the worker is frozen for a moment in between.
///
/// Nothing here may cost the worker anything but time: if a step fails, the next hibernation
/// compares pages.
extension Pager {
  /// The greatest time from the order to freeze until the whole group is frozen. On a busy machine
  /// a thread may wait that long for a processor.
  private static let freezeTimeout = Duration.milliseconds(20)

  /// Freezes the worker. If it returns false, writes won't be tracked. (`isFrozen` says whether the
  /// worker has to be thawed.)
  func freezeForTracking() throws -> Bool {
    guard keepsBase, mustDropBase?() != true, !isFrozen, processes.allSatisfy(\.canBeTracked),
      try waitUntilAwake(), try waitUntilFreezable(), processes.allSatisfy(\.canBeTracked)
    else { return false }
    // A worker that has ended has no group any more, or its next run has it.
    guard image.processes.allSatisfy({ $0.identity.life == .lives }), target.root.life == .lives
    else { return false }
    do throws(SystemCallError) { try cgroup.beginFreeze() } catch { return false }
    isFrozen = true
    // A thread that waits for a page, or for the reading of its message, can't freeze.
    let deadline = Deadline(in: Self.freezeTimeout)
    var isUnmoved = true
    // If that can't be read, the group counts as not frozen.
    while (try? cgroup.isFrozen) != true {
      for process in processes where !process.hasVanished {
        isUnmoved = try serveLateFaults(process) && isUnmoved
      }
      if deadline.hasPassed { return false }
      pauseThread(for: .microseconds(50))
    }
    return isUnmoved && processes.allSatisfy { $0.hasVanished || !$0.userfault.hasEventInFlight }
  }

  /// Waits until the thread that resumes the worker has let it run.
  private func waitUntilAwake() throws -> Bool {
    guard let isAwake else { return false }
    let deadline = Deadline(in: .seconds(2))
    while !isFrozen, !deadline.hasPassed {
      if let isAwake = isAwake() { return isAwake }
      try serveAll(wait: 1)
    }
    return false
  }

  /// Waits until no thread is in a call that can't be interrupted: such a thread would make all
  /// others wait. Most such calls are short.
  private func waitUntilFreezable() throws -> Bool {
    let deadline = Deadline(in: .milliseconds(10))
    while !isFrozen {
      if processes.allSatisfy(\.canFreezeAtOnce) { return true }
      if deadline.hasPassed { return false }
      try serveAll(wait: 1)
    }
    return false
  }

  /// Answers threads that wait although no page of the image is missing any more. Returns false if
  /// the process has moved memory or forked.
  private func serveLateFaults(_ process: LazyProcess) throws -> Bool {
    var pages = process.faults
    process.faults = []
    var isUnmoved = true
    while let received = try nextMessage(of: process) {
      let message = received.message
      switch Int(message.event) {
      case CLINUX_UFFD_PAGEFAULT: pages.append(message.b & ~(pageSize - 1))
      case CLINUX_UFFD_FORK:
        process.journal.forksAreDone()
        isUnmoved = false
      case CLINUX_UFFD_REMAP: isUnmoved = false
      default: break  // Nothing is missing there, and the tracker won't register it.
      }
    }
    for page in pages {
      switch try retry.run({ () throws(SystemCallError) in try process.userfault.fillZeros(page) })
      {
      case .present, .notRegistered: process.userfault.wake(page, pageSize)
      case .eventFirst: process.faults.append(page)
      case .vanished: process.hasVanished = true
      case .filled: break
      }
    }
    return isUnmoved
  }

  /// Hands a process over to its tracker. The worker must be frozen, and no message under way.
  func handOver(_ process: LazyProcess) throws {
    FaultPoint.handingOver.pass()
    do {
      tracked[process.pid] = try tracking(of: process)
    } catch {
      tracked[process.pid] = nil
      // The process is released even if it has ended, or executes another program.
      try release(process)
    }
  }

  private func tracking(of process: LazyProcess) throws -> TrackedFill? {
    // Some kernels can't read the page map of a process that has ended.
    guard let tracker = process.tracker, HibernationTarget.lifeOfMemory(process.pid) != .hasEnded
    else {
      try release(process)
      return nil
    }
    let pages = try PageMap(pid: process.pid)
    var trackedFill = TrackedFill()
    for mapping in process.mappings {
      // `nil` means that other memory is mapped in some of it.
      if let unwritten = try pages.unwrittenPages(in: mapping) {
        // Pages that were moved are marked as unwritten at their present addresses.
        let moved = (process.layout.droppedAlone ?? []).map {
          PageRange(from: $0.lowerBound, to: $0.upperBound)
        }
        trackedFill.unwritten += unwritten.subtracting(moved)
        trackedFill.armed.append(mapping)
      }
    }
    // A mapping may have grown, and be registered beyond its earlier end.
    try process.userfault.unregisterAllOfFrozen()
    trackedFill.armed = try trackedFill.armed.filter { mapping in
      do throws(SystemCallError) { try tracker.register(mapping) } catch { return false }
      return try pages.protect(mapping)
    }
    return trackedFill
  }

  /// Drops all results if another program has thawed the worker meanwhile, or that can't be read:
  /// writes may have been missed.
  func checkHandOver() {
    if (try? cgroup.isFrozen) != true { tracked = [:] }
  }
}

extension Pager {
  /// Stops tracking, because no base stays.
  func endTracking() {
    for process in processes where tracked[process.pid] != nil {
      for mapping in process.mappings {
        // The tracker's descriptor is closed soon, which ends what this misses.
        try? process.tracker?.unregister(mapping)
      }
    }
    tracked = [:]
  }
}

extension LazyProcess {
  /// True if the process's writes can be tracked. Memory that was moved has other addresses than in
  /// the base.
  fileprivate var canBeTracked: Bool { hasVanished || tracker != nil && !layout.hasMoves }

  /// True if no thread would delay a freeze: none is in a call that can't be interrupted.
  fileprivate var canFreezeAtOnce: Bool {
    if hasVanished { return true }
    // Threads that have ended, or may not be read, don't matter. If that isn't known now, the
    // worker isn't frozen.
    do throws(SystemCallError) {
      let all = try readIfPossible { () throws(SystemCallError) in try threads(of: pid) }
      for thread in all ?? [] {
        let stat = try readIfPossible { () throws(SystemCallError) in try ProcessStat.read(thread) }
        if stat?.state == .uninterruptible { return false }
      }
      return try DivisibleCall.thread(of: pid) == nil
    } catch { return false }
  }
}
