import CLinux
import Glibc
import Linux

/// The recovery of lazy restores during which the earlier daemon died.
extension Hibernator {
  /// True if the worker may run already, while some of its pages are in the image only.
  func isFilling(_ image: ImageReader) throws(HibernationError) -> Bool {
    try Self.findHandles(image).allSatisfy { $0.handle.journal.phase != .preparing }
  }

  /// Returns true if pages of the worker are in an image only, or if that can't be found out now.
  public static func mayNeedImage(_ target: HibernationTarget) -> Bool {
    do throws(HibernationError) { return try processNeedingImage(target) != nil } catch {
      return true
    }
  }

  private static func processNeedingImage(
    _ target: HibernationTarget
  ) throws(HibernationError) -> Int32? {
    try attempt(.checking) { () -> Int32? in
      for process in try target.discover().processes {
        let needsImage = try readIfPossible { () throws(SystemCallError) in
          try FaultJournal.hasMissingPages(process.identity)
        }
        if needsImage == true { return process.pid }
      }
      return nil
    }
  }

  /// Checks that a worker whose image is missing needs no page of it.
  ///
  /// - Throws: `intact` if the image's directory isn't there, and `unverifiable` if the image was
  ///   removed.
  static func checkNeedsNoImage(
    _ target: HibernationTarget, at path: String, _ expectation: ImageExpectation
  ) throws(HibernationError) {
    guard let pid = try processNeedingImage(target) else { return }
    let isAway = expectation.isForAnotherDirectory(than: path)
    throw HibernationError(
      .reading,
      "its image \(path) is not there, which has pages that process \(pid) needs: "
        + (isAway ? "its file system may not be mounted" : "it was removed"),
      aftermath: isAway ? .intact : .unverifiable)
  }

  /// Undoes the beginning of a restore: no process has run since, so the worker is as it was
  /// before.
  func returnToRest(_ image: ImageReader, _ pagedProcesses: [PagedProcess]) throws(HibernationError)
  {
    try attempt(.writingBack) {
      for paged in pagedProcesses { try paged.handle.userfault.unregisterAll() }
      try image.mark(.atRest)
      for paged in pagedProcesses { paged.handle.journal.reset(to: .idle) }
    }
  }

  /// Continues a trim that an earlier daemon began: the missing pages stay in the image.
  ///
  /// - Returns: false if the worker isn't trimmed, or its pages have to be filled.
  func continueTrim(
    _ image: ImageReader, _ target: HibernationTarget, wakes: Bool = true
  ) throws(HibernationError) -> Bool {
    let pagedProcesses = try Self.findHandles(image)
    try completeForks(of: pagedProcesses, image, target)
    guard pagedProcesses.areTrimmed else { return false }
    return try serve(target, from: image, pagedProcesses, wakes: wakes)
  }

  /// Starts a pager for a trimmed worker, which may be frozen or stopped, and lets it run.
  ///
  /// - Parameters:
  ///   - missing: counts what is missing; `nil`: a new counter.
  ///   - wakes: false leaves a suspended worker frozen. The caller wakes it.
  /// - Returns: false if the worker has no cgroup, or no thread can be started.
  func serve(
    _ target: HibernationTarget, from image: ImageReader, _ pagedProcesses: [PagedProcess],
    missing: MissingBytes? = nil, wakes: Bool = true
  ) throws(HibernationError) -> Bool {
    guard let cgroup = target.cgroup?.freezer else { return false }
    let wanted = try attempt(.checking) { try readText("\(cgroup.path)/cgroup.freeze") }
    // The pager thaws what it takes for frozen by a pager.
    let isFrozen = wakes && wanted.hasPrefix("1")
    let mayBeStopped = pagedProcesses.mayBeStopped
    let end = try attempt(.waking) { try TrimEnd(listsDropAfter: listsDropAfter) }
    let fill = BackgroundFill(
      missing: image.backgroundFillLength, counter: missing,
      lengthOutsideBase: image.fillLengthOutsideBase,
      target: target, image: image.path, trimEnd: end,
      delayed: { [fillFailed] in fillFailed?(target.name, $0) })
    for paged in pagedProcesses {
      let identity = image.processes[paged.index].identity
      handles[target.name, default: [:]][identity] = paged.handle
    }
    fill.announce(to: standby, pagedProcesses.map(\.handle))
    let isStarted = startPager(of: target, from: image, as: fill, for: pagedProcesses) {
      pagedProcesses, resting in
      Self.page(
        image, target: target, cgroup: cgroup, pagedProcesses: pagedProcesses, learning: nil,
        missing: fill.missing, isFrozen: isFrozen, isContinuation: true, of: fill,
        resting: &resting)
    }
    if !isStarted { fill.retract() }
    if isStarted, wakes {
      target.waitForStops()
      // The pager does this for a frozen worker.
      if !isFrozen { target.restartInterruptedSyscalls() }
      // After an error the caller would start a second pager.
      try untilDone(for: target) { () throws(HibernationError) in
        do { try target.continueStopped(all: mayBeStopped) } catch let error as SystemCallError
          where !error.isShortage
        {
          // All processes run but those of another user, which this daemon can't continue.
        } catch { throw .from(error, in: .waking) }
      }
    }
    return isStarted
  }

  /// Continues a lazy restore during which the earlier daemon died. Returns the number of bytes of
  /// its background fill.
  func continueFill(
    _ image: ImageReader, _ target: HibernationTarget
  ) throws(HibernationError) -> UInt64 {
    guard let cgroup = target.cgroup?.freezer else {
      throw HibernationError(
        .checking, "it was restored lazily without a cgroup", aftermath: .unverifiable)
    }
    let pagedProcesses = try Self.findHandles(image)
    if pagedProcesses.contains(where: { $0.handle.journal.phase == .preparing }) {
      // No process has run, so the restore starts from the beginning.
      try checkAtRest(target)
      // From here on the image counts as at rest.
      try ResumeMarker.clear(of: target)
      try returnToRest(image, pagedProcesses)
      return try restoreMemory(target, from: image.asRestingImage, run: true)
    }
    try completeForks(of: pagedProcesses, image, target)
    let wanted = try attempt(.checking) { try readText("\(cgroup.path)/cgroup.freeze") }
    let isFrozen = wanted.hasPrefix("1")
    let mayBeStopped = pagedProcesses.mayBeStopped
    var refusal: HibernationError?
    let outcome = Self.page(
      image, target: target, cgroup: cgroup, pagedProcesses: pagedProcesses,
      missing: MissingBytes(0),
      isFrozen: isFrozen, isContinuation: true
    ) {
      do throws(HibernationError) {
        try attempt(.waking) { try target.continueStopped(all: mayBeStopped) }
      } catch { refusal = error }
    }
    if let failure = outcome.failure ?? refusal { throw failure }
    return image.backgroundFillLength
  }

  /// Gives children their pages whose parents were forking when the earlier pager died.
  private func completeForks(
    of pagedProcesses: [PagedProcess], _ image: ImageReader, _ target: HibernationTarget
  ) throws(HibernationError) {
    for paged in pagedProcesses where paged.handle.journal.openForks > 0 {
      // If no page is missing any more, none is missing in a child.
      if paged.handle.journal.phase != .complete { try restoreChildren(of: paged, image, target) }
      paged.handle.journal.forksAreDone()
    }
  }

  /// Finds the worker's own descriptors. A worker that has lost them can touch missing pages that
  /// are never filled: that is an error.
  static func findHandles(
    _ image: ImageReader
  ) throws(HibernationError) -> [PagedProcess] {
    var pagedProcesses: [PagedProcess] = []
    for (index, process) in image.processes.enumerated() where !process.identity.hasEnded {
      if !image.hasBackgroundFill(of: index) { continue }
      let handle: FaultHandle?
      var isOld = false
      do {
        handle = try FaultHandle.find(in: process.identity)
        if handle == nil {
          isOld = try FaultJournal.all(in: process.pid).contains { !$0.header.isTrusted }
          // Nothing of the earlier program is missing in the one that the process executes now.
          if try !isOld && image.isOfEarlierProgram(of: index) { continue }
        }
      } catch let error as FaultJournal.Damaged {
        throw HibernationError(
          .filling, "the missing pages of process \(process.pid) can't be filled in: \(error)",
          aftermath: .unverifiable)
      } catch {
        if HibernationTarget.lifeOfMemory(process.pid) == .hasEnded { continue }
        throw HibernationError(
          .filling,
          "the missing pages of process \(process.pid) can't be filled in: \(error); "
            + "it waits for them",
          aftermath: .intact)
      }
      guard let handle, let phase = handle.journal.phase, phase != .idle else {
        if HibernationTarget.lifeOfMemory(process.pid) == .hasEnded { continue }
        throw HibernationError(
          .filling,
          isOld
            ? "the journal of missing pages of process \(process.pid) is of an earlier version, "
              + "and the worker could have changed it"
            : "process \(process.pid) has closed its userfaultfd while pages were missing",
          aftermath: .unverifiable)
      }
      pagedProcesses.append(PagedProcess(index: index, handle: handle))
    }
    return pagedProcesses
  }
}

extension ImageReader {
  /// True if a process executes another program than the one whose memory is in the image: it has
  /// no mapping that begins or ends where one of that program did. A program that has only closed
  /// its userfaultfd still has its stack, for example.
  fileprivate func isOfEarlierProgram(of process: Int) throws(SystemCallError) -> Bool {
    let earlier = mappings.filter { Int($0.process) == process }.map(\.range)
    let present = try MemoryMapping.headers(of: processes[process].pid).map(\.range)
    let (starts, ends) = (Set(present.map(\.address)), Set(present.map(\.end)))
    return !earlier.isEmpty
      && !earlier.contains { starts.contains($0.address) || ends.contains($0.end) }
  }

  /// Makes memory ordinary memory that an earlier trim of its processes has registered: a write to
  /// it would wait.
  func unregister() throws {
    for process in processes where !process.identity.hasEnded {
      let handle: FaultHandle?
      do { handle = try FaultHandle.find(in: process.identity) } catch is FaultJournal.Damaged {
        continue  // If its memory is registered, the write fails.
      }
      try handle?.userfault.unregisterAll()
      handle?.journal.reset(to: .idle)
    }
  }
}

extension HibernationTarget {
  /// Continues what an earlier daemon has left stopped after a fill or a trim that it began:
  /// masters of prefork servers while their children run, or all processes. A process that isn't
  /// stopped gets no SIGCONT: that may end a call of it with EINTR.
  ///
  /// - Parameter all: true if each process may be stopped. After the death of its tracer a thread
  ///   stops when it gets a processor, and nothing shows that before. SIGCONT prevents it.
  fileprivate func continueStopped(all: Bool) throws {
    // The last thread of the earlier daemon may be about to end.
    let deadline = Deadline(in: .seconds(1))
    while all, try discover().tracedByOthers != nil, !deadline.hasPassed {
      pauseThread(for: .milliseconds(1))
    }
    var tree = try discover()
    if !all {
      tree.processes = try tree.processes.filter { stat in
        // A process that has ended isn't stopped.
        try readIfPossible { () throws(SystemCallError) in
          try ProcessStatus.read(stat.pid)
        }?.isStoppedOrAboutTo ?? false
      }
    }
    try waits.continueAll(tree)
  }
}

extension [PagedProcess] {
  fileprivate var mayBeStopped: Bool { contains { $0.handle.journal.phase == .handedOver } }

  /// True if the processes are trimmed, and their trim can be continued.
  var areTrimmed: Bool {
    !isEmpty
      && allSatisfy {
        [.trimmed, .handedOver].contains($0.handle.journal.phase)
          && $0.handle.journal.openForks == 0
      }
  }
}

extension ProcessStatus {
  fileprivate var isStoppedOrAboutTo: Bool {
    state == .stopped || Self.contains(pendingForThread | pendingForProcess, SIGSTOP)
  }
}
