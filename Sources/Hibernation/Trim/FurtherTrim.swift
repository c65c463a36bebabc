import Linux

/// A trim of a worker that is trimmed by userfaultfd already: only what is in memory is written and
/// freed. What is missing stays on disk.
///
/// The pager of the earlier trim freezes the worker and ends. Until the new image has replaced the
/// earlier one, the earlier one and the journals count: a failure, or another daemon, continues
/// with them. From then on the journals say nothing any more, and the new image has everything.
extension Hibernator {
  /// Below this number of bytes in memory, the worker needn't be copied ahead.
  private static var maxResident: UInt64 { 16 << 20 }
  /// Below this number of bytes that the base doesn't have, a new base saves too little.
  private static var minLengthOutsideBase: UInt64 { 8 << 20 }

  /// Returns the fill of the worker's last trim if the next trim can continue it. Otherwise all of
  /// its memory comes back first: the trim uses another mechanism, much of the memory is there
  /// already, or the base is too old or has too little of it.
  func trimToContinue(_ request: TrimRequest) -> BackgroundFill? {
    let target = request.target
    guard let fill = fills[target.name], fill.trimEnd != nil, !fill.hasEnded, !fill.mustDropBase,
      fill.image == request.image.path, request.mechanism != .swap, imageObstacle(request) == nil,
      // The next step reports the error.
      let pids = try? target.discover().pids, !pids.isEmpty,
      request.mechanism == .userfaultfd || Self.swapObstacle(of: pids) != nil
    else { return nil }
    let resident = pids.reduce(0) { $0 + anonymousMemory(of: $1) }
    let total = resident + fill.missing.bytes
    guard resident <= max(Self.maxResident, total / 2) else { return nil }
    if let length = fill.lengthOutsideBase {
      guard length <= max(Self.minLengthOutsideBase, total / 2) else { return nil }
      if let base = bases[target.name], Clocks.monotonic - base.file.made >= Base.maxAge {
        return nil
      }
    }
    return fill
  }

  /// Writes and frees what a trimmed worker has in memory.
  ///
  /// - Parameter limit: the greatest time for which it may stand still; nil: there is none.
  /// - Returns: `nil` if all of its memory has come back meanwhile.
  func trimAgain(
    _ image: HibernationRequest, after earlier: BackgroundFill, limit: Duration?
  ) throws(HibernationError) -> (hibernated: HibernationSummary, since: Standstill)? {
    let target = image.target
    var missing: MissingPages?
    var image = image
    do throws(HibernationError) {
      image.standstill = try freeze(target, limit: limit) { (still) throws in
        missing = try handOver(earlier, still)
        return missing != nil
      }
    } catch {
      // `freeze` has let it run again, and its threads wait for pages.
      if let missing { try serveOn(target, missing, after: earlier, isStopped: false) }
      throw error
    }
    guard let missing, let still = image.standstill else { return nil }
    do throws(HibernationError) {
      let hibernated = try hibernate(image, continuing: earlier, missing)
      earlier.retract()
      return (hibernated, still)
    } catch {
      if error.aftermath != .unverifiable, fills[target.name] != nil {
        // If it isn't known whether it is frozen, it may be stopped.
        try serveOn(
          target, missing, after: earlier, isStopped: (try? target.isFrozen()) != true)
      } else {
        earlier.retract()
        if error.aftermath != .unverifiable { try runAgain(target, isStopped: true) }
      }
      throw error
    }
  }

  /// Ends the pager of a trimmed worker, which is frozen then. The fill has what is missing.
  ///
  /// - Parameter still: limits the time until it is frozen.
  /// - Returns: `nil` if all pages are in place instead, and the worker runs.
  func handOver(
    _ fill: BackgroundFill, _ still: Standstill = Standstill(limit: nil)
  ) throws(HibernationError) -> MissingPages? {
    let name = fill.target.name
    if let missing = fill.handedOver { return missing }
    guard let outcome = fill.handOver(still) else {
      try still.check()
      throw HibernationError(.stopping, "busy: it can't be frozen while it gets missing pages")
    }
    guard let missing = outcome.handedOver else { return nil }
    learn(outcome, of: fill, name)
    let image = missing.image
    guard let base = image.base, let id = base.id else { return missing }
    let inBase = image.pagesOfNextBase
    var current: [ProcessIdentity: [PageRange]] = [:]
    for process in missing.processes {
      let identity = image.processes[process.paged.index].identity
      current[identity] = (inBase[identity] ?? []).subtracting(process.dropped)
      trackers[name]?[identity]?.registered = []
      trackers[name]?[identity]?.armed =
        process.paged.handle.userfault.tracksWrites && process.paged.tracker != nil
        ? image.mappings.filter { Int($0.process) == process.paged.index }.map(\.range) : []
    }
    let file = bases[name]?.file ?? BaseFile(path: base.path, id: id, made: Clocks.monotonic)
    bases[name] = Base(file: file, current: current, image: base)
    return missing
  }

  /// Starts another pager for a worker whose last one has ended.
  ///
  /// - Parameter isStopped: false if only the freezer keeps it from running.
  private func serveOn(
    _ target: HibernationTarget, _ missing: MissingPages, after fill: BackgroundFill,
    isStopped: Bool
  ) throws(HibernationError) {
    if !isStopped {
      // Otherwise each later daemon would send it SIGCONT, also if its user has stopped it.
      for process in missing.processes { process.paged.handle.journal.phase = .trimmed }
    }
    fill.retract()
    try untilDone(for: target) { () throws(HibernationError) in
      let isServed = try serve(
        target, from: missing.image, missing.processes.map(\.paged), missing: fill.missing)
      if !isServed { throw HibernationError(.waking, "no thread can be started for its pager") }
    }
  }
}
