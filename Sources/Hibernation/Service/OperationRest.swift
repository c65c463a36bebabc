import Linux

/// The end of a hibernation.
extension Operation {
  /// Brings the worker to rest: frozen in a cgroup made by Dormouse, or stopped, traced and parked.
  mutating func rest() throws(HibernationError) -> HibernationSummary {
    if let cgroup = freezer {
      try attempt(.resting) {
        try cgroup.freeze(until: Deadline(in: HibernationTarget.timeout))
      }
      FaultPoint.frozen.pass()
      let (moved, tree) = (moved, tree)
      detach()
      FaultPoint.detached.pass()
      // The worker is frozen, so it doesn't run. This ends the stop: only the freezer is left.
      try attempt(.resting) { try target.waits.continueAll(tree) }
      HugePages.clearUseMarks(of: tree)
      return try finish(moved: moved, processes: tree.processes.count)
    }
    let moved = moved
    hibernator.tracedSessions[target.name] = processes.map(\.session)
    hibernator.parked[target.name] = processes.filter(\.isParked).map(\.parking)
    let count = processes.count
    HugePages.clearUseMarks(of: tree)
    processes = []
    return try finish(moved: moved, processes: count)
  }

  private var moved: UInt64 { processes.reduce(0) { $0 + ($1.plan?.bytes ?? 0) } }

  private func finish(
    moved: UInt64, processes: Int
  ) throws(HibernationError) -> HibernationSummary {
    if let writer {
      try attempt(.resting) { try writer.markAtRest() }
      writer.startWriteback(dropsCache: request.storage.dropsCache)
    }
    FaultPoint.rested.pass()
    if overlay == nil { hibernator.dropBase(of: target.name, for: path) }
    // The allocator would keep the compressors' memory.
    SelfMemory.releaseUnusedSoon()
    let refusal =
      restore.isLazy && freezer == nil
      ? "lazy restore needs a cgroup of its own" : lazyRefusal
    let written = mark?.fileLength ?? 0
    var image = image
    if let refusal { image.restore = RestorePlan(eager: refusal) }
    return HibernationSummary(
      image: image, moved: moved, imageLength: written + (overlay?.base.fileLength ?? 0),
      written: written, unchanged: overlay?.reference.bytes ?? 0,
      compared: overlay?.compared ?? 0, trackingRefusal: trackingRefusal, processes: processes,
      lazyRefusal: refusal ?? (request.restore == .lazy && !restore.isLazy ? restore.reason : nil),
      duration: .nanoseconds(Clocks.monotonic - started))
  }

  var image: RestingImage {
    RestingImage(path: path, expecting: .image(of: mark, at: path), restore: restore)
  }
}
