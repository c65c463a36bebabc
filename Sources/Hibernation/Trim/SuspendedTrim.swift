import Linux

/// How a worker that is trimmed by userfaultfd is suspended, hibernated and resumed while its
/// memory stays in the image. Its pager freezes it and ends, as for a further trim, so that only
/// the suspension keeps it from running. Another pager serves it when it is resumed.
///
/// Meanwhile the journals and the image say what is missing, and `fills` has the ended fill. The
/// standby pager doesn't know the worker: if the daemon dies, the worker stays suspended.
extension Hibernator {
  /// Freezes a worker with missing memory, instead of a suspension's own freeze. What a resume has
  /// to bring back is awaited; what was trimmed stays missing.
  ///
  /// - Returns: what is missing. `nil`: all of its memory is in place, and the worker runs.
  public func freezeTrimmed(_ name: String) throws(HibernationError) -> MissingBytes? {
    if let fill = fills[name], fill.trimEnd != nil, let missing = try handOver(fill) {
      // Only the freezer keeps it from running: nothing is stopped.
      for process in missing.processes { process.paged.handle.journal.phase = .trimmed }
      fill.retract()
      return fill.missing
    }
    try awaitFill(of: name)
    return nil
  }

  /// Starts a pager for a suspended worker with memory in the image at `path`, before another step
  /// lets it run. Nothing is done if all of its memory is in place by now.
  public func serveTrimmed(
    _ target: HibernationTarget, image path: String
  ) throws(HibernationError) {
    guard let fill = try trimmedFill(of: target, at: path), let missing = fill.handedOver else {
      return
    }
    let isServed = try serve(
      target, from: missing.image, missing.processes.map(\.paged), missing: fill.missing,
      wakes: false)
    if !isServed { throw HibernationError(.waking, "no thread can be started for its pager") }
  }

  /// Puts all missing pages of a suspended worker in place. It stays frozen.
  func fillSuspended(
    _ fill: BackgroundFill, _ missing: MissingPages
  ) -> BackgroundFill.Outcome {
    guard let cgroup = fill.target.cgroup?.freezer else { return BackgroundFill.Outcome() }
    let outcome = Self.page(
      missing.image, target: fill.target, cgroup: cgroup,
      pagedProcesses: missing.processes.map(\.paged), missing: fill.missing,
      isFrozen: true, isContinuation: true, staysFrozen: true)
    fill.missing.end()
    return outcome
  }

  /// Hibernates a suspended worker that is trimmed.
  ///
  /// - Returns: `nil` if it isn't trimmed, or needs all of its memory first.
  func hibernateTrimmed(
    _ request: HibernationRequest
  ) throws(HibernationError) -> HibernationSummary? {
    guard let fill = try trimmedFill(of: request.target, at: request.path) else { return nil }
    // An encrypted image can't refer to one that isn't.
    let handedOver =
      request.isSealed
      ? nil
      : try keepingFrozen(fill) { () throws in
        try handOver(fill)
      }
    guard let missing = handedOver else {
      try keepingFrozen(fill) { () throws in try awaitFill(of: request.target.name) }
      return nil
    }
    // The hibernation stops its processes.
    for process in missing.processes { process.paged.handle.journal.phase = .handedOver }
    fill.retract()
    do throws(HibernationError) {
      return try hibernate(request, continuing: fill, missing)
    } catch {
      // It has to run for a moment, and no pager serves it.
      guard error.isBusy, fills[request.target.name] === fill else { throw error }
      return nil
    }
  }

  /// Performs a step of a suspended worker's pager, and freezes the worker again if the pager has
  /// let it run: it had to fill all pages, or couldn't end.
  private func keepingFrozen<Value>(
    _ fill: BackgroundFill, _ step: () throws -> Value
  ) throws(HibernationError) -> Value {
    let outcome = Result { try step() }
    try attempt(.stopping) {
      try fill.target.cgroup?.freezer?.freeze(until: Deadline(in: HibernationTarget.timeout))
    }
    return try attempt(.stopping) { try outcome.get() }
  }

  /// Writes and frees what a trimmed worker has in memory, which is frozen and has no pager. The
  /// new image refers to the same base.
  func hibernate(
    _ request: HibernationRequest, continuing fill: BackgroundFill, _ missing: MissingPages
  ) throws(HibernationError) -> HibernationSummary {
    var request = request
    if missing.image.base != nil { request.overlay = true }
    return try hibernate(request, inheriting: missing)
  }

  /// Returns the fill of a trimmed worker. If an earlier daemon has suspended it, a pager continues
  /// that daemon's trim from here on, and the worker stays frozen.
  private func trimmedFill(
    of target: HibernationTarget, at path: String
  ) throws(HibernationError) -> BackgroundFill? {
    if fills[target.name] == nil, !isAbsent(path) {
      // Another worker's image, or one that can't be read, isn't this worker's trim.
      guard let image = try? ImageReader(path: path), image.progress == .filling,
        image.processes.contains(where: { $0.identity == target.root }),
        image.lock(waits: false),
        try continueTrim(image, target, wakes: false)
      else { return nil }
    }
    return fills[target.name].flatMap { $0.trimEnd == nil ? nil : $0 }
  }
}

extension HibernationService {
  /// Waits for the worker's fill; see `Hibernator.awaitFill`. It also waits for that worker's other
  /// operations, so the event loop must not call it. Nor may it call the functions below.
  public func awaitFill(of name: String) throws(HibernationError) {
    _ = try perform(about: name) { (hibernator) throws(HibernationError) in
      try hibernator.awaitFill(of: name)
    }
  }

  /// Freezes a worker with missing memory; see `Hibernator.freezeTrimmed`.
  public func freezeTrimmed(_ name: String) throws(HibernationError) -> MissingBytes? {
    let missing = try perform(about: name) { (hibernator) throws(HibernationError) in
      try hibernator.freezeTrimmed(name)
    }
    return missing ?? nil
  }

  /// Starts a pager for a suspended worker; see `Hibernator.serveTrimmed`.
  public func serveTrimmed(
    _ target: HibernationTarget, image path: String
  ) throws(HibernationError) {
    _ = try perform(about: target.name, makesHibernator: true) {
      (hibernator) throws(HibernationError) in
      try DescriptorReserve.use { () throws(HibernationError) in
        try hibernator.serveTrimmed(target, image: path)
      }
    }
  }
}
