import Glibc
import Linux

/// The steps that a hibernation with overlays adds.
extension Operation {
  // MARK: what must be written

  /// Decides which pages the next image must have. `nil` means all of them.
  func planOverlay() throws(HibernationError) -> Overlay? {
    guard overlays,
      let base = inherited == nil
        ? hibernator.openBase(of: target.name, for: path) : inherited?.image.base
    else { return nil }
    // The base was made for eager restores: a lazy one would need all of its pages before the
    // worker runs.
    if inherited == nil, restore.isLazy,
      !base.chunks.contains(where: { $0.isPrefetched || $0.isBackgroundFilled })
    {
      return nil
    }
    // The subjects have the same indices as the processes.
    var subjects: [Overlay.Subject] = []
    for seized in processes {
      guard let plan = seized.plan else { return nil }
      subjects.append(
        Overlay.Subject(
          identity: seized.stat.identity, plan: plan, memory: seized.memory,
          knowledge: try attempt(.scanning) { try knowledge(of: seized) }))
    }
    do {
      return try Overlay(
        of: subjects, over: base, inheriting: inherited.map { supplied(by: $0) },
        lanes: hibernator.lanes, access: hibernator.features.forcedAccess)
    } catch is ImageError where inherited == nil {
      // A base that is damaged, or can't be read now, isn't used.
      return nil
    } catch { throw .from(error, in: .scanning) }
  }

  /// Returns what the kernel has recorded about writes since the last resume.
  private func knowledge(of seized: SeizedProcess) throws(SystemCallError) -> WriteKnowledge {
    let identity = seized.stat.identity
    var knowledge = WriteKnowledge()
    knowledge.current = hibernator.bases[target.name]?.current[identity] ?? []
    guard let pages = seized.pages,
      let armed = hibernator.trackers[target.name]?[identity]?.armed, !armed.isEmpty
    else { return knowledge }
    for mapping in seized.mappings where !mapping.hasFile {
      for segment in [mapping.range].intersection(with: armed) {
        guard let unwritten = try pages.unwrittenPages(in: segment) else { continue }
        knowledge.tracked.append(segment)
        knowledge.unwritten += unwritten
      }
    }
    return knowledge
  }

  /// Returns the process's mappings if the memo of them is still valid.
  func recallMappings(
    of stat: ProcessStat, _ tracked: TrackedProcess?
  ) throws -> [MemoryMapping]? {
    guard let tracked, let memo = tracked.memo, try ProcessStatus.read(stat.pid).lockedBytes == 0,
      let mappings = try memo.recall(pid: stat.pid)
    else { return nil }
    for mapping in mappings where !mapping.hasFile && PagePlan.canMove(mapping) {
      // It is registered with another userfaultfd, or is memory of a kind that can't be (droppable,
      // a shadow stack), or the process has another memory now: smaps shows which.
      guard Self.canRegister(mapping.range, with: tracked.tracker) else { return nil }
    }
    return mappings
  }

  // MARK: for the next time

  /// Makes the process's writes visible from its next resume on. If that isn't possible, the next
  /// hibernation compares pages instead.
  ///
  /// - Returns: the reason if writes can't be tracked.
  func track(
    _ seized: SeizedProcess, plan: PagePlan, injector: Injector
  ) throws -> String? {
    guard hibernator.features.writeTracking else { return "this kernel can't track writes" }
    let identity = seized.stat.identity
    var process = hibernator.trackers[target.name]?[identity]
    // The process may have another memory by now (exec).
    if let tracked = process, let some = plan.trackableMappings.first,
      !Self.canRegister(some, with: tracked.tracker)
    {
      process = nil
    }
    do {
      let tracker =
        try process?.tracker ?? injector.openWriteTracker { FaultPoint.trackerOpened.pass() }
      var registered: [PageRange] = []
      if restore.isLazy {
        // A lazy restore registers these mappings itself, with the process's own userfaultfd.
        for mapping in seized.mappings where !mapping.hasFile && PagePlan.canMove(mapping) {
          try tracker.unregister(mapping.range)
        }
      } else {
        registered = plan.trackableMappings.filter { Self.canRegister($0, with: tracker) }
      }
      hibernator.trackers[target.name, default: [:]][identity] = TrackedProcess(
        tracker: tracker, registered: registered, memo: seized.memo ?? process?.memo)
      return nil
    } catch TraceError.injected(let call, let pid, let code) {
      return "\(call) inside process \(pid): \(String(cString: strerror(code)))"
    } catch let error as SystemCallError { return error.description }
  }

  private static func canRegister(_ range: PageRange, with tracker: WriteTracker) -> Bool {
    do throws(SystemCallError) {
      try tracker.register(range)
      return true
    } catch { return false }
  }
}
