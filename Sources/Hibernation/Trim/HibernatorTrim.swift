import Glibc
import Linux

extension Hibernator {
  /// A trim or a fill ends after this time, with what it has moved by then.
  private static var moveTimeout: Duration { .seconds(50) }

  /// Moves the anonymous memory of a running worker to the kernel's swap, or to an image. What the
  /// worker touches comes back by itself.
  ///
  /// Pages that processes share since a fork stay in RAM, and so do locked ones (mlock): the kernel
  /// doesn't move them. If hardly anything could be moved, that isn't an error.
  ///
  /// Call it on the hibernator's thread: it waits for the disk.
  public func trim(_ request: TrimRequest) throws(HibernationError) -> TrimSummary {
    let (target, record) = (request.target, request.record)
    let deadline = Deadline(in: Self.moveTimeout)
    let earlier = trimToContinue(request)
    if earlier == nil { try awaitFill(of: target.name) }
    // An attempt of this daemon that lost a thread has left it.
    try Self.repairTrim(record: record, of: target.root)
    var stoppedFor = Duration.zero
    var image: ImageTrim?
    var summary = try move(target) { (tree) throws(HibernationError) in
      if earlier != nil || request.mechanism == .userfaultfd
        || request.mechanism == .auto && Self.swapObstacle(of: tree.pids) != nil
          && imageObstacle(request) == nil
      {
        image = try moveToImage(request, tree, continuing: earlier, until: deadline)
        return .userfaultfd
      }
      // With `mechanism: auto` each of both could be made to work.
      let other = request.mechanism == .auto ? imageObstacle(request) : nil
      try Self.checkSwap(of: tree, otherObstacle: other)
      for mechanism in trimMechanisms {
        switch mechanism {
        case .userfaultfd: continue
        case .processMadvise:
          if try pageOut(tree, until: deadline) { return mechanism }
        case .reclaim:
          if try reclaim(target, tree, until: deadline) { return mechanism }
        case .borrowedThread:
          stoppedFor = try borrow(target, tree, record: record, until: deadline)
          return mechanism
        }
      }
      throw HibernationError(
        .checking, "this daemon may not move its memory to swap", aftermath: .ineligible)
    }
    summary.stoppedFor = image?.stoppedFor ?? stoppedFor
    summary.missing = image?.missing
    summary.written = image?.written ?? 0
    summary.inImage = summary.missing.map { Int64(clamping: $0.bytes) }
    summary.swapped += summary.inImage ?? 0
    return summary
  }

  /// Makes the kernel reclaim the memory of the worker's own cgroup.
  ///
  /// - Returns: false if it has no such cgroup, or this kernel can't.
  private func reclaim(
    _ target: HibernationTarget, _ tree: ProcessTree, until deadline: Deadline
  ) throws(HibernationError) -> Bool {
    guard let cgroup = target.cgroup?.freezer, cgroup.canReclaim else { return false }
    try attempt(.evicting) {
      try cgroup.reclaim(Footprint.measure(tree.pids).anonymous, until: deadline)
    }
    return true
  }

  /// Pages out by borrowed threads.
  ///
  /// - Returns: the longest time for which the worker stood still.
  private func borrow(
    _ target: HibernationTarget, _ tree: ProcessTree, record: String, until deadline: Deadline
  ) throws(HibernationError) -> Duration {
    guard features.canInject else {
      throw HibernationError(
        .checking, "borrowing a thread is implemented for x86-64 and arm64 only",
        aftermath: .ineligible)
    }
    var trim = try BorrowedTrim(target, features, record: record, until: deadline)
    do throws(HibernationError) { try trim.run(tree) } catch {
      if trim.hasLostThread { try Self.repairTrim(record: record, of: target.root) }
      throw error
    }
    return trim.longestStop
  }

  /// Moves all private memory of a running worker that is in swap back into RAM.
  public func fill(_ target: HibernationTarget) throws(HibernationError) -> TrimSummary {
    let deadline = Deadline(in: Self.moveTimeout)
    try awaitFill(of: target.name)
    return try move(target) { (tree) throws(HibernationError) in
      try attempt(.filling) {
        for process in tree.processes {
          try Self.unlessVanished { () throws(SystemCallError) in
            try SwappablePages.readBack(
              target.memory(of: process.identity), useScan: features.pagemapScan, until: deadline)
          }
        }
      }
      return nil
    }
  }

  /// Measures the worker before and after its memory is moved.
  private func move(
    _ target: HibernationTarget,
    by body: (ProcessTree) throws(HibernationError) -> TrimSummary.Mechanism?
  ) throws(HibernationError) -> TrimSummary {
    do throws(HibernationError) {
      let tree = try attempt(.checking) {
        try target.cgroup?.checkContains(target.root)
        return try target.discover()
      }
      if tree.isEmpty { throw HibernationError(.checking, "it has ended", aftermath: .vanished) }
      let before = try attempt(.checking) { try Footprint.measure(tree.pids) }
      let mechanism = try body(tree)
      // It may have other processes by now.
      let after = try attempt(.checking) { try Footprint.measure(target.discover().pids) }
      return TrimSummary(
        mechanism: mechanism, residentBefore: before.footprint - before.swapped,
        residentAfter: after.footprint - after.swapped, swapped: after.swapped)
    } catch {
      // The end of one process isn't the end of a worker that has others.
      guard error.aftermath != .unverifiable else { throw error }
      let lives = error.aftermath == .vanished ? target.hasSurvivors() : target.hasLivingProcess
      guard lives else {
        throw HibernationError(error.phase, error.reason, aftermath: .vanished)
      }
      if error.aftermath == .vanished { throw HibernationError(error.phase, error.reason) }
      throw error
    }
  }

  /// Performs a step with one process; nothing is left to do for one that has ended.
  private static func unlessVanished(
    _ step: () throws(SystemCallError) -> Void
  ) throws(SystemCallError) {
    do throws(SystemCallError) { try step() } catch { if !error.meansVanished { throw error } }
  }

  // MARK: trim from outside

  /// The kernel blocks changes of the process's mappings during a call, so each call is for at most
  /// this many bytes.
  private static var bytesPerCall: UInt64 { 4 << 20 }

  /// Makes the kernel page out the memory of running processes (process_madvise(2)).
  ///
  /// - Returns: false if that isn't permitted for any process; then nothing was done.
  private func pageOut(
    _ tree: ProcessTree, until deadline: Deadline
  ) throws(HibernationError) -> Bool {
    var isPermitted = false
    try attempt(.evicting) {
      for process in tree.processes {
        try Self.unlessVanished { () throws(SystemCallError) in
          if try pageOut(process.identity, until: deadline) { isPermitted = true }
        }
      }
    }
    return isPermitted
  }

  /// - Returns: false if that isn't permitted, or if this kernel can't.
  private func pageOut(
    _ process: ProcessIdentity, until deadline: Deadline
  ) throws(SystemCallError) -> Bool {
    let pidfd = try process.openPidfd()
    let pages = try SwappablePages.resident(of: process.pid, useScan: features.pagemapScan)
    for range in pages.batches(of: 1, bytes: Self.bytesPerCall).joined() {
      if deadline.hasPassed { return true }
      do throws(SystemCallError) { try range.pageOut(of: process.pid, through: pidfd) } catch {
        switch error.code {
        case EPERM, EACCES, ENOSYS: return false
        // It has locked or unmapped the range meanwhile.
        case EINVAL, ENOMEM: continue
        default: throw error
        }
      }
    }
    return true
  }
}

extension HibernationService {
  /// Trims a running worker; see `Hibernator.trim`. It waits for the worker's other operations.
  public func trim(
    _ request: TrimRequest,
    then completion: @escaping @Sendable (Result<TrimSummary, HibernationError>) -> Void
  ) {
    submit(about: request.target.name, completion) { (hibernator) throws(HibernationError) in
      try hibernator.trim(request)
    }
  }

  /// Sets the report of completed fills; see `Hibernator.fillEnded`.
  public func onFillEnd(_ report: @escaping @Sendable (String) -> Void) {
    shared.withLock { $0.fillEnded = report }
    submit(toAll: all()) { $0.hibernator.withLock { $0.fillEnded = report } }
  }

  /// Sets the report of trims whose memory came back as a whole, with the worker's name and the
  /// reason as a clause; see `Hibernator.trimLost`.
  public func onTrimLoss(_ report: @escaping @Sendable (String, String) -> Void) {
    shared.withLock { $0.trimLost = report }
    submit(toAll: all()) { $0.hibernator.withLock { $0.trimLost = report } }
  }

  /// Fills a running worker; see `Hibernator.fill`.
  public func fill(
    _ target: HibernationTarget,
    then completion: @escaping @Sendable (Result<TrimSummary, HibernationError>) -> Void
  ) {
    submit(about: target.name, completion) { (hibernator) throws(HibernationError) in
      try hibernator.fill(target)
    }
  }
}
