import Linux

/// The result of a trim by userfaultfd.
struct ImageTrim {
  /// What is in the image.
  let missing: MissingBytes?
  /// The number of bytes that were written to the image and its base.
  let written: UInt64
  /// The time for which the worker stood still.
  let stoppedFor: Duration
}

/// A trim by userfaultfd: the worker's memory is written to an image, and the worker runs on
/// without it. It is a hibernation and a lazy resume in one.
extension Hibernator {
  /// Signalled while no trim is under way: a worker would stand still for longer while the memory
  /// of others is compressed.
  private static let isFree: Semaphore = {
    let semaphore = Semaphore()
    semaphore.signal()
    return semaphore
  }()
  /// The greatest time for which a trim waits for others.
  private static var maxWait: Duration { .seconds(20) }

  /// The reason why the worker can't be trimmed by userfaultfd; nil if none is known.
  func imageObstacle(_ request: TrimRequest) -> String? {
    if request.mechanism == .auto, let obstacle = request.imageObstacle { return obstacle }
    if let obstacle = features.lazyObstacle { return obstacle }
    if request.image.isSealed { return "its image would be encrypted (hibernate.encrypt)" }
    if request.target.cgroup?.freezer == nil {
      return "a trim by userfaultfd needs a cgroup of its own"
    }
    return nil
  }

  /// Moves the memory of a running worker to an image.
  ///
  /// - Parameter earlier: the fill of the worker's last trim, if that is to be continued.
  func moveToImage(
    _ request: TrimRequest, _ tree: ProcessTree, continuing earlier: BackgroundFill?,
    until deadline: Deadline
  ) throws(HibernationError) -> ImageTrim {
    var image = request.image
    let keepsBase = image.overlay
    (image.restore, image.overlay, image.isTrim) = (.lazy, true, true)
    let plan = plan(image, tree)
    if let obstacle = imageObstacle(request) ?? (plan.isLazy ? nil : plan.reason) {
      let advice = features.lazyObstacle == nil ? "" : "; `mechanism: swap` doesn't need it"
      // The service may be started, or the policy changed, while the worker runs.
      throw HibernationError(.checking, obstacle + advice)
    }
    guard Self.isFree.wait(within: Self.maxWait) else {
      throw HibernationError(.checking, "busy: other workers are being trimmed")
    }
    defer { Self.isFree.signal() }
    // The wait for the disk comes before the standstill.
    if let obstacle = image.obstacle(true) { throw HibernationError(.checking, obstacle) }
    try check(request.target, tree)
    let still: (hibernated: HibernationSummary, since: Standstill)
    var written: UInt64 = 0
    let again = try Thread.urgently { [image] () throws(HibernationError) in
      try earlier.flatMap { (earlier) throws(HibernationError) in
        try trimAgain(image, after: earlier, limit: request.maxStandstill)
      }
    }
    if let again {
      still = again
    } else {
      try awaitFill(of: request.target.name)
      do throws(HibernationError) {
        written = try copyAhead(request, tree, until: deadline)
        still = try Thread.urgently { [image] () throws(HibernationError) in
          try trimFirst(image, limit: request.maxStandstill)
        }
      } catch {
        if !keepsBase { dropOverlays(of: request.target.name, for: image.path) }
        throw error
      }
    }
    let resumed = try Thread.urgently { () throws(HibernationError) in
      try resume(request.target, from: still.hibernated.image, keepsBase: keepsBase)
    }
    let stoppedFor = still.since.length
    if let reason = resumed.eagerReason {
      throw HibernationError(
        .checking, reason, aftermath: still.hibernated.image.restore.isLazy ? .intact : .ineligible)
    }
    return ImageTrim(
      missing: resumed.missing, written: written + still.hibernated.written, stoppedFor: stoppedFor)
  }

  /// Freezes a running worker, and writes and frees its memory.
  private func trimFirst(
    _ image: HibernationRequest, limit: Duration?
  ) throws(HibernationError) -> (hibernated: HibernationSummary, since: Standstill) {
    var image = image
    let still = try freeze(image.target, limit: limit) { (still) throws in
      do { try image.target.cgroup?.freezer?.freeze(until: still.end) } catch {
        try still.check()
        throw error
      }
      return true
    }
    image.standstill = still
    do throws(HibernationError) { return (try hibernate(image), still) } catch {
      // It may be stopped, too, if it couldn't be frozen again.
      if error.aftermath != .unverifiable { try runAgain(image.target, isStopped: true) }
      throw error
    }
  }

  /// Freezes a running worker, as a suspension does.
  ///
  /// - Parameters:
  ///   - limit: the greatest time for which it may stand still; nil: there is none.
  ///   - step: freezes it. If it returns false or throws, it has left the worker running.
  func freeze(
    _ target: HibernationTarget, limit: Duration?, by step: (Standstill) throws -> Bool
  ) throws(HibernationError) -> Standstill {
    try attempt(.stopping) {
      let tree = try target.discover()
      if try target.isFrozen() {
        throw HibernationError(.stopping, "it is frozen already")
      }
      try Self.checkDivisibleCalls(of: tree)
      target.waits.willRest(tree)
      let still = Standstill(limit: limit)
      if try !step(still) { return still }
      do {
        let tree = try target.discover()
        if let thread = tree.threadOnItsWay(until: still.end) {
          try still.check()
          throw HibernationError(.stopping, "thread \(thread) doesn't come to rest")
        }
        target.waits.didRest(tree)
        return still
      } catch {
        try runAgain(target, isStopped: false)
        throw error
      }
    }
  }

  /// Lets a worker run whose memory is in place.
  func runAgain(
    _ target: HibernationTarget, isStopped: Bool
  ) throws(HibernationError) {
    try untilDone(for: target) { () throws(HibernationError) in
      try attempt(.waking) {
        try target.wake(
          target.restartInterruptedSyscalls(), isStopped: isStopped, mastersLast: false)
      }
    }
  }

  private func resume(
    _ target: HibernationTarget, from image: RestingImage, keepsBase: Bool
  ) throws(HibernationError) -> ResumeSummary {
    var failedWake: HibernationError?
    let summary = try untilDone(for: target) { () throws(HibernationError) -> ResumeSummary? in
      let end = try attempt(.checking) { try TrimEnd(listsDropAfter: listsDropAfter) }
      do throws(HibernationError) {
        return try DescriptorReserve.use { () throws(HibernationError) in
          try resume(target, from: image, keepsBase: keepsBase, trimEnd: end)
        }
      } catch {
        // Its memory is where it belongs, and the image may not be valid any more.
        guard error.phase == .waking, error.aftermath == .intact else { throw error }
        failedWake = error
        return nil
      }
    }
    if let summary { return summary }
    try runAgain(target, isStopped: true)
    guard let missing = fills[target.name]?.missing else {
      throw failedWake ?? HibernationError(.waking, "it couldn't be woken at once")
    }
    return ResumeSummary(
      restored: 0, backgroundFill: missing.bytes, missing: missing, duration: .zero)
  }

  /// Repeats a step that lets the worker run, while it fails for a reason that may pass: the engine
  /// counts the worker as running, and nothing else would wake it.
  func untilDone<Value>(
    for target: HibernationTarget, _ step: () throws(HibernationError) -> Value
  ) throws(HibernationError) -> Value {
    var pause = Duration.milliseconds(2)
    while true {
      do throws(HibernationError) { return try step() } catch {
        guard error.aftermath == .intact, target.hasLivingProcess else { throw error }
        pauseThread(for: pause)
        pause = min(pause * 2, .milliseconds(500))
      }
    }
  }
}
