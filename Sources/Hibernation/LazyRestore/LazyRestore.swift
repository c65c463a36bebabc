import CLinux
import Glibc
import Linux
import Synchronization

extension Hibernator {
  enum LazyRestoreResult {
    /// The restore has begun. Sizes are in bytes.
    /// A lazy restore isn't possible, for this reason. Nothing has changed.
    case done(written: UInt64, backgroundFill: UInt64)
    case refused(String)
  }

  /// Waits until a lazy restore is complete, and records what it has shown about the working set.
  /// Call it before a worker is frozen: a thread that waits for a page can't be frozen. A worker
  /// that is suspended with memory missing gets all of it, and stays frozen.
  ///
  /// - Throws: the reason if the lazy restore has failed, only once. The worker has then been
  ///   killed.
  public func awaitFill(of name: String) throws(HibernationError) {
    guard let fill = fills.removeValue(forKey: name) else { return }
    var outcome = fill.wait()
    if let missing = outcome.handedOver { outcome = fillSuspended(fill, missing) }
    acceptBase(of: fill, outcome, name)
    if let failure = outcome.failure {
      handles[name] = nil
      throw failure
    }
    learn(outcome, of: fill, name)
    guard var record = fill.record else { return }
    record.waited = outcome.waited
    record.halt = outcome.halt
    record.waits = outcome.touched.values.reduce(0) { $0 + $1.early.count }
    record.wanted += outcome.touched.values.reduce(0) { $0 + UInt64($1.count) * pageSize }
    histories[name, default: ResumeHistory()].record(record)
  }

  /// Adds what the worker has waited for to its working set.
  func learn(
    _ outcome: BackgroundFill.Outcome, of fill: BackgroundFill, _ name: String
  ) {
    for identity in (handles[name] ?? [:]).keys {
      guard let touched = outcome.touched[identity.pid] else { continue }
      workingSets[name, default: [:]][identity, default: WorkingSet()].learn(
        touched, ofMemory: (fill.record?.total ?? 0) / UInt64(outcome.touched.count))
    }
  }

  /// Calls `awaitFill` for fills that have ended, so that their bases can be removed.
  func collectFills() {
    for (name, fill) in fills where fill.hasSucceeded {
      try? awaitFill(of: name)  // It has no failure.
    }
  }

  /// Commit B of a lazy restore: from here on the image's earlier base isn't needed any more, and
  /// the base that stays may be the next image's.
  func acceptBase(
    of fill: BackgroundFill, _ outcome: BackgroundFill.Outcome, _ name: String
  ) {
    for identity in (trackers[name] ?? [:]).keys {
      trackers[name]?[identity]?.registered = outcome.tracked[identity.pid]?.armed ?? []
    }
    guard outcome.keepsBase, let file = fill.base else {
      // If pages couldn't be filled, the image is still there and may need its base.
      endTracking(of: name)
      if outcome.failure == nil { bases[name] = nil }
      return
    }
    if fill.mustDropBase {
      // The base was dropped after the pager had checked that: the image was already renamed to be
      // the base.
      endTracking(of: name)
      bases[name] = nil
      discardFile(file.path)
      return
    }
    var base = Base(file: file, current: outcome.pagesOfBase)
    for identity in (trackers[name] ?? [:]).keys {
      let trackedFill = outcome.tracked[identity.pid] ?? TrackedFill()
      trackers[name]?[identity]?.armed = trackedFill.armed
      // Pages that were written during the fill differ from the base.
      base.current[identity] = base.current[identity]?.split(by: trackedFill.unwritten).inside
    }
    bases[name] = base
  }

  /// Writes the pages that mustn't be missing, and lets the worker run. The other pages follow in
  /// the background.
  ///
  /// - Parameter trimEnd: if it is set, the other pages follow when it is requested.
  func restoreLazily(
    _ target: HibernationTarget, from restingImage: RestingImage, learns: Bool, keepsBase: Bool,
    trimEnd: TrimEnd?, recorded: () -> String?
  ) throws(HibernationError) -> LazyRestoreResult {
    let image = try openVerified(restingImage, of: target, heldBase: bases[target.name]?.image)
    guard let cgroup = target.cgroup?.freezer, tracedSessions[target.name] == nil else {
      return .refused("no cgroup of its own")
    }
    guard image.progress == .atRest, !image.mappings.isEmpty else {
      return .refused("its image was not made for lazy restore")
    }
    if learnedSets(of: target.name).isEmpty, !learns {
      return .refused("no history yet of the pages needed first")
    }
    try checkAnyProcessLives(image)
    try checkAtRest(target)
    let began = Clocks.monotonic
    var pagedProcesses: [PagedProcess] = []
    for (index, process) in image.processes.enumerated() {
      if process.identity.hasEnded { return .refused("one of its processes has ended") }
      if !image.hasBackgroundFill(of: index) { continue }
      guard let handle = handles[target.name]?[process.identity] else {
        return .refused("process \(process.pid) has no userfaultfd made by Dormouse")
      }
      pagedProcesses.append(
        PagedProcess(
          index: index, handle: handle,
          tracker: keepsBase || trimEnd != nil
            ? trackers[target.name]?[process.identity]?.tracker : nil))
    }

    guard image.lock(waits: false) else { return .refused("another process uses its image") }
    for paged in pagedProcesses { paged.handle.journal.reset(to: .preparing) }
    do throws(SystemCallError) { try image.mark(.filling) } catch {
      for paged in pagedProcesses { paged.handle.journal.reset(to: .idle) }
      return .refused("its image can't be written to: \(error.reason)")
    }
    FaultPoint.fillMarked.pass()
    do {
      try prefetch(image, into: target, &pagedProcesses)
      // This daemon's pager, or the standby pager if the daemon dies, removes the image when all
      // pages are in place.
      try recordResume(from: image, of: target, recorded)
    } catch {
      try returnToRest(image, pagedProcesses)
      if let error = error as? HibernationError { throw error }
      return .refused("\(error)")
    }
    let backgroundFill = image.backgroundFillLength
    // What a trim costs says nothing about resumes.
    let record = trimEnd == nil ? record(of: image, target.name, since: began) : nil
    try start(
      image, target: target, cgroup: cgroup, pagedProcesses: pagedProcesses, record: record,
      keepsBase: keepsBase, trimEnd: trimEnd)
    try wake(target, image, before: fills[target.name], mastersLast: trimEnd == nil)
    return .done(written: image.dataLength - backgroundFill, backgroundFill: backgroundFill)
  }

  /// Returns what is known about a resume before the worker runs.
  private func record(
    of image: ImageReader, _ name: String, since began: Int64
  ) -> ResumeHistory.LazyResume {
    let isLearned = learnedSets(of: name).contains(where: \.isLearned)
    return ResumeHistory.LazyResume(
      beforeRunning: Clocks.monotonic - began, waited: 0,
      wanted: image.dataLength - image.backgroundFillLength, total: image.dataLength,
      wasLearning: !isLearned,
      learnedMore: isLearned && histories[name]?.learnsMore == true)
  }

  /// Puts everything in place that the worker needs before it runs.
  private func prefetch(
    _ image: ImageReader, into target: HibernationTarget, _ pagedProcesses: inout [PagedProcess]
  ) throws {
    // Ranges are registered first: from here on only the pages that Dormouse fills appear in them.
    // Otherwise a write to one page of an area for huge pages would add 511 neighbours of zeros,
    // and so would khugepaged; a debugger's read would leave the zero page.
    for paged in pagedProcesses {
      for mapping in image.mappings where Int(mapping.process) == paged.index {
        try paged.handle.userfault.register(mapping.range)
      }
    }
    FaultPoint.registered.pass()
    let unexpected = try pagedProcesses.map {
      try self.unexpectedlyPresentPages(in: image, process: $0.index)
    }
    try writeBack(
      image, into: target, sessions: [],
      prefetch: Prefetch(pagedProcesses: pagedProcesses, image: image))
    for (index, pages) in unexpected.enumerated() {
      pagedProcesses[index].presentPages = try overwrite(
        pages, of: image, process: pagedProcesses[index].index, target)
    }
  }

  private func wake(
    _ target: HibernationTarget, _ image: ImageReader, before fill: BackgroundFill?,
    mastersLast: Bool
  ) throws(HibernationError) {
    try attempt(.waking) {
      do {
        try target.wake(correctingTimeoutsOf: image, mastersLast: mastersLast)
        fill?.didWake(true)
      } catch {
        fill?.didWake(false)
        throw error
      }
    }
  }

  // MARK: pages that came back by themselves

  /// Finds pages of the background fill that aren't missing although they were freed. The kernel
  /// writes to some pages while the worker comes to rest (the rseq area, beside the thread-locals):
  /// their content is wrong, and a fill would skip them. Call this after their ranges are
  /// registered, so that no more can appear, and before anything is filled.
  private func unexpectedlyPresentPages(in image: ImageReader, process index: Int) throws
    -> [PageRange]
  {
    let pages = try PageMap(
      pid: image.processes[index].pid, useScan: features.pagemapScan)
    let mappings = image.mappings.filter { Int($0.process) == index }
    let populated = try pages.populatedPages(inRegistered: mappings.map(\.range))
    if populated.isEmpty { return [] }
    // The working set may have stayed in memory (hibernate.keep_working_set).
    let background = image.steps.filter { $0.isBackgroundFilled && $0.process == index }
    return populated.intersection(with: background.flatMap(\.ranges).union())
  }

  /// Writes the pages of `unexpected` that the image has in its background fill, and returns them.
  private func overwrite(
    _ unexpected: [PageRange], of image: ImageReader, process index: Int,
    _ target: HibernationTarget
  ) throws -> Set<UInt64> {
    var written: Set<UInt64> = []
    if unexpected.isEmpty { return written }
    let memory = try target.memory(of: image.processes[index].identity)
    let buffer = ChunkBuffer()
    for chunk in image.steps where chunk.isBackgroundFilled && chunk.process == index {
      // Few chunks are near one of the few unexpected pages.
      let hull = chunk.ranges.hull
      let near = unexpected.filter { $0.intersection(with: hull) != nil }
      if near.isEmpty { continue }
      var pages: UnsafeRawPointer?
      var offset = 0
      for range in chunk.ranges {
        for run in near {
          guard let both = range.intersection(with: run) else { continue }
          for page in both.pages { written.insert(page) }
          let loaded = try pages ?? buffer.load(chunk, of: image)
          pages = loaded
          try memory.write(
            [both], from: loaded + offset + Int(both.address - range.address))
        }
        offset += Int(range.length)
      }
    }
    return written
  }

  /// Starts the fill's thread. If there is none, all pages are filled on this one.
  private func start(
    _ image: ImageReader, target: HibernationTarget, cgroup: WorkerCgroup,
    pagedProcesses: [PagedProcess], record: ResumeHistory.LazyResume?, keepsBase: Bool,
    trimEnd: TrimEnd?
  ) throws(HibernationError) {
    let learning = record.map {
      Pager.Learning(
        isLearning: $0.wasLearning || $0.learnedMore,
        untilOutput: !learnedSets(of: target.name).isEmpty)
    }
    let fill = BackgroundFill(
      record, missing: image.backgroundFillLength, lengthOutsideBase: image.fillLengthOutsideBase,
      target: target, image: image.path,
      base: keepsBase ? baseFile(after: image, of: target.name) : nil, trimEnd: trimEnd,
      delayed: { [fillFailed] in fillFailed?(target.name, $0) })
    let keepsBase = fill.base != nil
    fill.announce(to: standby, pagedProcesses.map(\.handle))
    for paged in pagedProcesses {
      paged.handle.journal.phase = trimEnd == nil ? .filling : .trimmed
    }
    FaultPoint.fillPrepared.pass()
    // The counters are read before the worker runs.
    let firstOutput = FirstOutput(
      of: trimEnd == nil ? pagedProcesses.map(\.handle.userfault.pid) : [])
    let turn = turn
    let kept = image.withoutThreads
    let isStarted = startPager(of: target, from: kept, as: fill, for: pagedProcesses) {
      pagedProcesses, resting in
      defer { turn?.end() }
      return Self.page(
        kept, target: target, cgroup: cgroup, pagedProcesses: pagedProcesses,
        learning: learning, missing: fill.missing, isFrozen: false, isContinuation: false,
        keepsBase: keepsBase, of: fill, firstOutput: firstOutput, turn: turn, resting: &resting)
    }
    if isStarted {
      self.turn = nil
      return
    }
    // No process runs yet, so all pages are filled now.
    let outcome = Self.page(
      image, target: target, cgroup: cgroup, pagedProcesses: pagedProcesses, missing: fill.missing,
      isFrozen: true, isContinuation: false, keepsBase: keepsBase)
    fill.retract()
    acceptBase(of: fill, outcome, target.name)
    if let failure = outcome.failure { throw failure }
  }
}
