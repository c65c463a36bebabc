import Policy

// The transitions suspended → hibernating → hibernated.

/// What has been tried and learned about hibernating this run of a worker.
struct HibernationHistory: Codable, Sendable, Equatable {
  var footprintBefore: ByteCount?
  var imageSize: ByteCount?
  var permanentRefusal: String?
  var failures = 0
  var lastFailure: String?
  var retryAt: Instant?
  var lastResume: Instant?
  /// When the worker was hibernated. Cleared when its image is read.
  var at: Instant?

  /// The delay after a failure: 30 s, doubled with each further failure, at most an hour.
  static func backOff(after failures: Int) -> Duration {
    .seconds(min(30 << min(max(failures - 1, 0), 7), 3600))
  }
}

extension Engine {
  mutating func advanceSuspended(_ index: Int) {
    setGoalFromWake(index)
    if workers[index].goal == nil { considerHeartbeat(index) }
    switch workers[index].goal?.destination {
    case .foreground?, .background?: resume(index)
    case .suspended?: fulfillGoal(index)
    case .stopped?, .terminated?:
      beginEnding(index, workers[index].goal?.cause ?? .active, gracefully: true)
    case .hibernated?: hibernateOnRequest(index)
    case nil: considerHibernation(index)
    }
  }

  /// For checks: a worker whose hibernation is due, that nothing prevents, and that still sleeps in
  /// memory. Between two events there is none.
  public var overlookedSleeper: WorkerID? {
    let overlooked = workers.indices(.held).first { index in
      if isShadow(index) { return false }
      if case .none = hibernationOccasion(index) { return false }
      return true
    }
    return overlooked.map { workers[$0].id }
  }

  private mutating func considerHibernation(_ index: Int) {
    let excess: FootprintExcess?
    switch hibernationOccasion(index) {
    case .none(let verdict): return workers.setVerdictOfDue(index, verdict)
    case .idle: excess = nil
    case .excess(let footprintExcess): excess = footprintExcess
    }
    let slept = now - workers[index].run.restingSince
    if isShadow(index) {
      let text = "been hibernated: suspended for \(slept.text)"
      if reportOnce(index, step: .hibernation, text: text) { countImagined(index, .hibernated) }
      return
    }
    hibernate(index, excess.map { .footprint($0) } ?? .suspendedFor(slept))
  }

  /// Why a suspended worker is to be hibernated now.
  private enum HibernationOccasion {
    case idle
    case excess(FootprintExcess)
    case none(SleeperVerdict)
  }

  /// A function of its own that changes nothing. In a function that may change the engine, the
  /// compiler copies the worker's record, or the whole engine, to read a worker.
  @inline(never)
  private func hibernationOccasion(_ index: Int) -> HibernationOccasion {
    let excess = isShadow(index) ? nil : workers[index].excess(.hibernate, at: now)
    if let obstacle = obstacle(workers[index], to: excess == nil ? .automatic : .pressure) {
      return .none(verdict(obstacle, on: workers[index]))
    }
    return excess.map { .excess($0) } ?? .idle
  }

  private mutating func hibernateOnRequest(_ index: Int) {
    guard let goal = workers[index].goal else { return }
    switch obstacle(workers[index], to: .request) {
    case nil: hibernate(index, goal.cause)
    case .measuring?: break
    case .some(let obstacle):
      concludeGoal(
        index, code: .refused, text: "\(workers[index].id) stays suspended: \(obstacle.sentence)")
    }
  }

  mutating func hibernate(_ index: Int, _ cause: Cause) {
    move(index, to: .hibernating, cause)
    emit(.hibernate(workers[index].id))
  }

  /// - Parameter result: `nil`: the outcome was lost, and the size of the image isn't known.
  mutating func recordHibernated(_ index: Int, _ result: HibernationResult?) {
    guard workers[index].state == .hibernating else { return }
    let before = result?.footprintBefore ?? workers[index].run.footprint
    workers[index].run.hibernation.footprintBefore = before
    workers[index].run.hibernation.imageSize = result?.imageSize
    workers[index].run.hibernation.at = now
    workers[index].run.hibernation.lastFailure = nil
    if let result { learn(index, from: result) }
    move(index, to: .hibernated, workers[index].cause)
    if result == nil { emit(.measure(workers[index].id)) }
    guard workers[index].goal?.destination == .hibernated else { return }
    let details = result.map { result in
      " in \(result.duration.text): footprint \(result.footprintBefore) → "
        + "\(result.footprintAfter), image \(result.imageSize)"
    }
    concludeGoal(index, code: .done, text: "\(workers[index].id) is hibernated\(details ?? "")")
  }

  private mutating func learn(_ index: Int, from result: HibernationResult) {
    // The hibernation came before the first measurement of this sleep.
    if !workers[index].run.isMeasuredAsleep { recordGrowth(index, result.footprintBefore) }
    workers[index].run.growth?.mayLackPages = true
    workers[index].learnImage(result)
    recordFootprint(index, result.footprintAfter)
    countImageWritten(result.imageSize)
  }

  mutating func recordHibernateFailed(_ index: Int, _ reason: String, permanent: Bool) {
    guard workers[index].state == .hibernating else { return }
    recordHibernationFailure(index, reason)
    if permanent { workers[index].run.hibernation.permanentRefusal = reason }
    // A led worker was running: its leader refused to hibernate it.
    let origin = workers[index].origin
    move(index, to: origin.runs ? origin : .suspended, .failed(reason))
    if workers[index].goal?.destination == .hibernated {
      failGoal(index, "\(workers[index].id) could not be hibernated: \(reason)")
    }
  }

  mutating func recordHibernationFailure(_ index: Int, _ reason: String) {
    workers[index].run.hibernation.failures += 1
    workers[index].run.hibernation.lastFailure = reason
    let failures = workers[index].run.hibernation.failures
    workers[index].run.hibernation.retryAt = now + HibernationHistory.backOff(after: failures)
  }
}
