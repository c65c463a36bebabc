import Linux

/// The pages of a trimmed worker that are in its image only. Its pager has ended, and the worker is
/// frozen: nothing fills them until another pager serves the worker.
struct MissingPages: Sendable {
  struct Process: Sendable {
    let paged: PagedProcess
    /// The missing pages, sorted by address. Each has the address that it has in the image.
    let missing: [PageRange]
    /// What the process has dropped since the trim. Its pages there aren't those of the image.
    let dropped: [PageRange]
    /// Chunks that came back because a thread waited for one of their pages.
    let used: [PageRange]
  }

  let image: ImageReader
  let processes: [Process]

  subscript(_ identity: ProcessIdentity) -> Process? {
    processes.first { image.processes[$0.paged.index].identity == identity }
  }
}

/// How the pager of a trimmed worker ends without filling, so that the worker can be trimmed again.
extension Pager {
  /// Freezes the worker, and finds out what is missing. The journals stay as they are: if the
  /// daemon dies, the next one continues the trim.
  ///
  /// - Returns: false if the worker is served on: it couldn't be frozen, or can't stay trimmed.
  func handOver(to end: TrimEnd) throws -> Bool {
    end.counter.clear()
    try freeze()
    let isComplete = try completeFreeze(until: end.freezeEnd)
    // Nothing of an earlier program is missing in the one that it executes now.
    for process in processes where !process.hasMemory { process.hasVanished = true }
    if isComplete,
      processes.allSatisfy({ $0.hasVanished || !$0.userfault.hasEventInFlight })
    {
      for process in processes {
        let ranges = process.missingChunks.flatMap { image.steps[$0].ranges }.union()
        let guards = try retry.run { () throws(SystemCallError) in
          try process.guardPages(in: ranges)
        }
        drop(guards, of: process)
      }
      if !endsTrim, end.acceptHandOver() {
        for process in processes { process.journal.phase = .handedOver }
        handedOver = MissingPages(
          image: image, processes: processes.map { $0.missingPages(in: image) })
        FaultPoint.trimHandedOver.pass()
        return true
      }
    }
    end.refuseHandOver()
    if !endsTrim {
      halt = nil
      // Another attempt to freeze it would only keep its other threads waiting.
      try repairAndThaw(within: isComplete ? .milliseconds(500) : .milliseconds(20))
    }
    return false
  }
}

extension LazyProcess {
  fileprivate func missingPages(in image: ImageReader) -> MissingPages.Process {
    let dropped = (layout.droppedAlone ?? []).map {
      PageRange(from: $0.lowerBound, to: $0.upperBound)
    }
    var missing: [PageRange] = []
    if !hasVanished {
      missing = missingChunks.flatMap { image.steps[$0].ranges }.union()
      let present = filled.map { PageRange(address: $0, length: pageSize) }.union()
      missing = missing.subtracting(present).subtracting(dropped)
    }
    // The page map of the next pager is that of the program that the process executes now.
    var paged = paged
    paged.hasVanished = hasVanished
    let used = Set(touched.pages.compactMap(chunk(with:))).filter(done.contains)
    return MissingPages.Process(
      paged: paged, missing: missing, dropped: dropped,
      used: used.flatMap { image.steps[$0].ranges }.union().subtracting(dropped))
  }
}
