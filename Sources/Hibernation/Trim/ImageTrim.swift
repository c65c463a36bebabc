import Glibc
import Linux

/// A trim by userfaultfd: the worker's memory is written to an image, and the worker runs on
/// without it. It is a hibernation and a lazy resume in one.
extension Hibernator {
  /// The reason why the worker can't be trimmed by userfaultfd; nil if none is known.
  func imageObstacle(_ request: TrimRequest) -> String? {
    if let obstacle = features.lazyObstacle { return obstacle }
    if request.image.isSealed { return "its image would be encrypted (hibernate.encrypt)" }
    if request.target.cgroup?.freezer == nil {
      return "a trim by userfaultfd needs a cgroup of its own"
    }
    return nil
  }

  /// Moves the memory of a running worker to an image.
  ///
  /// - Returns: what is in the image, and the time for which the worker stood still.
  func moveToImage(
    _ request: TrimRequest, _ tree: ProcessTree, until deadline: Deadline
  ) throws(HibernationError) -> (missing: MissingBytes?, stoppedFor: Duration) {
    var image = request.image
    let keepsBase = image.overlay
    (image.restore, image.overlay, image.isTrim) = (.lazy, true, true)
    let plan = plan(image, tree)
    if let obstacle = imageObstacle(request) ?? (plan.isLazy ? nil : plan.reason) {
      throw HibernationError(.checking, obstacle, aftermath: .ineligible)
    }
    try copyAhead(request, tree, until: deadline)
    let began = Clocks.monotonic
    try rest(request.target)
    let hibernated: HibernationSummary
    do throws(HibernationError) { hibernated = try hibernate(image) } catch {
      if error.aftermath != .unverifiable { try runAgain(request.target) }
      throw error
    }
    let resumed = try resume(request.target, from: hibernated.image, keepsBase: keepsBase)
    let stoppedFor = Duration.nanoseconds(Clocks.monotonic - began)
    if let reason = resumed.eagerReason {
      throw HibernationError(.checking, reason, aftermath: .ineligible)
    }
    return (resumed.missing, stoppedFor)
  }

  /// Freezes a running worker, as a suspension does.
  private func rest(_ target: HibernationTarget) throws(HibernationError) {
    try attempt(.stopping) {
      let tree = try target.discover()
      if try target.isFrozen() {
        throw HibernationError(.stopping, "it is frozen already")
      }
      if let thread = try DivisibleCall.thread(in: tree, until: Deadline(in: .milliseconds(200))) {
        throw HibernationError(
          .stopping, "thread \(thread) is in a call that a stop would end early")
      }
      target.waits.willRest(tree)
      try target.cgroup?.freezer?.freeze(until: Deadline(in: HibernationTarget.timeout))
      do {
        let tree = try target.discover()
        if let thread = tree.threadOnItsWay(until: Deadline(in: HibernationTarget.timeout)) {
          throw HibernationError(.stopping, "thread \(thread) doesn't come to rest")
        }
        target.waits.didRest(tree)
        try target.masters.find(in: tree)
      } catch {
        try runAgain(target)
        throw error
      }
    }
  }

  /// Lets a worker run whose memory is in place.
  private func runAgain(_ target: HibernationTarget) throws(HibernationError) {
    try untilDone(for: target) { () throws(HibernationError) in
      try attempt(.waking) {
        try target.wake(target.restartInterruptedSyscalls(), isStopped: false)
      }
    }
  }

  private func resume(
    _ target: HibernationTarget, from image: RestingImage, keepsBase: Bool
  ) throws(HibernationError) -> ResumeSummary {
    try untilDone(for: target) { () throws(HibernationError) in
      try DescriptorReserve.use { () throws(HibernationError) in
        let end = try attempt(.waking) { try TrimEnd() }
        return try resume(target, from: image, keepsBase: keepsBase, trimEnd: end)
      }
    }
  }

  /// Repeats a step that lets the worker run, while it fails for a reason that may pass: the engine
  /// counts the worker as running, and nothing else would wake it.
  private func untilDone<Value>(
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
