import Linux

/// How write tracking goes on when all pages are in place: until then the process's own userfaultfd has recorded writes, and
/// from then on a `WriteTracker` does. A mapping has one of them, so the worker is frozen for a moment in between.
extension Pager {
  /// A thread that can't be frozen in this time is in a call that may take long.
  private static let patienceForTracking = Duration.milliseconds(20)

  /// Freezes the worker. False: its writes can't be tracked, and the next hibernation compares pages.
  func holdForTracking() throws -> Bool {
    guard keepsBase, !isFrozen, processes.allSatisfy(\.canBeTracked), let isAwake, isAwake()
    else { return false }
    try writeControl("\(cgroup.path)/cgroup.freeze", "1")
    let deadline = Deadline(in: Self.patienceForTracking)
    while try !cgroup.isFrozen {
      // A thread that waits for a page, or for the reading of its message, can't freeze. A fork or a move freezes, too.
      try serveAll(wait: 0)
      if isFrozen { return false }
      pauseThread(for: .microseconds(50))
      if deadline.hasPassed {
        isFrozen = true
        return false
      }
    }
    isFrozen = true
    return processes.allSatisfy {
      $0.isGone || $0.canBeTracked && !$0.userfault.hasEventInFlight
    }
  }

  /// The worker is frozen, and no message is under way.
  func handOver(_ process: LazyProcess) throws {
    FaultPoint.handingOver.pass()
    do {
      tracked[process.pid] = try tracking(of: process)
    } catch let error as SystemCallError where error.meansVanished {
      // It has ended; the worker's others go on.
      process.isGone = true
    }
  }

  private func tracking(of process: LazyProcess) throws -> TrackedFill? {
    guard let tracker = process.tracker else {
      try release(process)
      return nil
    }
    let pages = try PageMap(pid: process.pid)
    var known = TrackedFill()
    for mapping in process.mappings {
      // `nil`: parts of it were unmapped.
      if let unwritten = try pages.unwrittenPages(in: mapping) {
        known.unwritten += unwritten
        known.armed.append(mapping)
      }
    }
    if process.layout.isIdentity {
      for mapping in process.mappings { try process.userfault.unregister(mapping) }
    } else {
      try release(process)
    }
    known.armed = try known.armed.filter { mapping in
      do throws(SystemCallError) { try tracker.register(mapping) } catch { return false }
      return try pages.protect(mapping)
    }
    return known
  }

  /// If another program has thawed the worker meanwhile, writes may have been missed.
  func checkHandOver() throws {
    if try !cgroup.isFrozen { tracked = [:] }
  }
}

extension LazyProcess {
  /// Memory that was moved has other addresses than in the base.
  fileprivate var canBeTracked: Bool { isGone || tracker != nil && !layout.hasMoves }
}
