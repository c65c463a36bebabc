import Policy

/// The trims of one run of a worker, and how much of the trimmed memory it needed again.
struct TrimHistory: Codable, Sendable, Equatable {
  /// The requests that wait for the outcome of a trim or of a fill.
  var trimRequests: [Request.ID] = []
  var fillRequests: [Request.ID] = []
  /// The ladder wants a trim.
  var isWanted = false
  /// The operation whose outcome is awaited. `nil`: none.
  var underWay: TrimState.Operation?
  /// From then on the outcome isn't awaited any more.
  var giveUpAt: Instant?
  /// The memory that is in swap, or in the image of a trim.
  var swapped = ByteCount.zero
  var swappedBefore = ByteCount.zero
  /// The number of trims that moved memory.
  var count = 0
  /// When the last trim or fill ended. `nil`: there was none.
  var lastAt: Instant?
  /// The result of the last trim, unless its memory has been moved again since: by a fill or a
  /// hibernation, or because the trim was lost.
  var last: TrimResult?
  /// Whether a fill came after the last trim.
  var isFilled = false
  /// How much memory the last trim moved out of RAM.
  var moved = ByteCount.zero
  /// How much of `moved` has come back.
  var cameBack = ByteCount.zero
  /// The time after the trim when more than a third of `moved` was seen to have come back.
  var cameBackAfter: Duration?
  /// The memory in RAM half a minute after the last trim, which the worker needs all the time. If
  /// more than a third came back by then, only what the trim itself left there.
  var needed = ByteCount.zero
  /// How often the shortest time between two trims has doubled.
  var doublings = 0
  var permanentRefusal: String?
  /// Why the last trim failed. `nil`: it didn't.
  var failure: String?
  /// The number of failures in a row.
  var failures = 0
  /// From then on the policy and the ladder try again after a failure or a loss.
  var retryAt: Instant?
  /// The last loss. `nil`: no trim was lost, or a later one wasn't.
  var loss: Loss?

  /// All memory of a trim came back although nothing asked for it.
  struct Loss: Codable, Sendable, Equatable {
    /// A clause, such as `it forks often`.
    var reason: String
    var at: Instant
    /// The number of losses in a row.
    var count: Int
  }

  /// A trim of which more than this share comes back isn't worth its cost.
  static let maxReturn = 3
  /// The time after a trim in which the memory that comes back is needed all the time.
  static let settling = Duration.seconds(30)
  /// With this many doublings, the policy doesn't trim the worker any more in this run.
  static let maxDoublings = 6
  /// The mechanism ends an operation before that time, with whatever it has moved until then.
  static let timeout = Duration.seconds(60)
  static let retry = Duration.seconds(60)
  /// After as many failures in a row, trims count as impossible here.
  static let manyFailures = 3

  /// Whether an operation is under way, or will begin as soon as possible.
  var isPending: Bool {
    underWay != nil || isWanted || !trimRequests.isEmpty || !fillRequests.isEmpty
  }

  var hasGivenUp: Bool { doublings >= Self.maxDoublings }

  /// The shortest time between two trims by the policy.
  func interval(_ rules: TrimRules) -> Duration { rules.every * (1 << min(doublings, 16)) }

  mutating func begin(_ operation: TrimState.Operation, at now: Instant) {
    underWay = operation
    giveUpAt = now + Self.timeout
    if operation == .trim {
      isWanted = false
      swappedBefore = swapped
    }
  }

  mutating func end() {
    underWay = nil
    giveUpAt = nil
  }

  mutating func didTrim(_ result: TrimResult, _ rules: TrimRules, at now: Instant) {
    // A trim whose memory stayed out of RAM for long enough makes up for earlier ones.
    if last != nil, let lastAt, cameBackAfter ?? (now - lastAt) >= interval(rules) {
      doublings = 0
    }
    if last != nil { loss = nil }
    forgetLast()
    swapped = result.swapped
    // All that is in an image counts, also what an earlier trim has moved there.
    moved = max(.zero, result.inImage ?? .zero, result.swapped - swappedBefore)
    if moved > .zero { count += 1 }
    lastAt = now
    last = result
    needed = result.residentAfter
    failure = nil
    failures = 0
    retryAt = nil
  }

  mutating func didFill(swapped: ByteCount, at now: Instant) {
    forgetLast()
    self.swapped = swapped
    lastAt = now
    isFilled = true
  }

  mutating func didHibernate() {
    forgetLast()
    swapped = .zero
  }

  mutating func didLose(_ reason: String, at now: Instant) {
    guard last != nil else { return }
    forgetLast()
    let before = loss?.count ?? 0
    loss = Loss(reason: reason, at: now, count: before + 1)
    retryAt = now + Self.pause(after: before)
  }

  /// Forgets the last trim: its memory was moved back into RAM, or somewhere else.
  private mutating func forgetLast() {
    last = nil
    isFilled = false
    moved = .zero
    cameBack = .zero
    cameBackAfter = nil
    needed = .zero
  }

  mutating func didFail(_ reason: String, permanent: Bool, at now: Instant) {
    // Memory in the image may have been moved back for the attempt, which says nothing about the
    // last trim.
    if let image = last?.inImage, image > .zero { forgetLast() }
    if permanent { permanentRefusal = reason }
    failure = reason
    retryAt = now + Self.pause(after: failures)
    failures += 1
  }

  /// The time until the next attempt, after one and `count` before it didn't succeed.
  private static func pause(after count: Int) -> Duration {
    retry * (1 << min(count, maxDoublings))
  }

  /// Compares a new measurement with the last trim.
  ///
  /// - Parameter resident: the part of the footprint that is in RAM.
  mutating func measured(resident: ByteCount, _ rules: TrimRules, at now: Instant) {
    guard underWay == nil, let last, let lastAt else { return }
    // Memory that the worker has freed leaves swap or the image without coming back.
    let returned = min(last.swapped - swapped, resident - last.residentAfter)
    cameBack = min(max(cameBack, returned), moved)
    guard cameBackAfter == nil else { return }
    guard moved > .zero, cameBack.bytes > moved.bytes / Int64(Self.maxReturn) else {
      if now <= lastAt + Self.settling { needed = max(needed, resident) }
      return
    }
    cameBackAfter = now - lastAt
    // From here on the longer interval takes account of this memory.
    needed = last.residentAfter
    if now - lastAt < interval(rules) { doublings += 1 }
  }

  /// From then on the ladder may trim the worker again. It doesn't wait for `trim.every`, but for
  /// longer if too much memory came back.
  func pauseOver(_ rules: TrimRules) -> Instant {
    let pause = min(rules.every, Self.retry) * (1 << min(doublings, Self.maxDoublings))
    return max(lastAt.map { $0 + pause } ?? .zero, retryAt ?? .zero)
  }
}

extension TrimRules {
  /// The smallest amount of memory for which a worker is trimmed: a page at least.
  var minTrimGain: ByteCount { max(minGain, .kilobytes(4)) }
}

extension WorkerRecord {
  /// The part of the footprint that is in RAM, by the last measurement.
  var resident: ByteCount { max(.zero, footprint - (run.trim?.swapped ?? .zero)) }

  /// How much memory a trim is expected to move out of RAM.
  var expectedTrimGain: ByteCount { max(.zero, resident - (run.trim?.needed ?? .zero)) }

  /// Whether the ladder waits for a trim of the worker.
  var isTrimmedSoon: Bool { run.trim?.isWanted == true || run.trim?.underWay == .trim }

  var isTrimming: Bool { run.trim?.underWay != nil }

  /// Whether the policy trims the worker while it runs, as far as is known: nothing forbids it, and
  /// it has succeeded or hasn't failed again and again.
  var isTrimmedByPolicy: Bool {
    guard policy.trim.after != nil, policy.trimObstacle ?? policy.unaskedTrimObstacle == nil,
      profile.leader == nil
    else { return false }
    guard let trim = run.trim else { return true }
    return trim.permanentRefusal == nil && !trim.hasGivenUp
      && (trim.count > 0 || trim.failures < TrimHistory.manyFailures)
  }

  /// When the policy trims the worker, if the gain is large enough then. `nil`: never.
  var trimDueAt: Instant? {
    guard let after = policy.trim.after, policy.unaskedTrimObstacle == nil, mayBeTrimmed,
      profile.leader == nil, run.trim?.hasGivenUp != true
    else { return nil }
    let first = run.runningSince + after
    guard let trim = run.trim else { return first }
    let next = trim.lastAt.map { $0 + trim.interval(policy.trim) } ?? first
    return max(first, next, trim.retryAt ?? first)
  }

  /// Whether anything but the time and the gain prevents a trim by the policy or the ladder.
  var mayBeTrimmed: Bool {
    (state == .foreground || state == .background) && policy.trimObstacle == nil
      && run.trim?.permanentRefusal == nil
  }

  /// Whether the ladder may trim the worker now.
  func isTrimmable(at now: Instant) -> Bool {
    mayBeTrimmed && !isTrimming && goal == nil && run.trim?.hasGivenUp != true
      && expectedTrimGain >= policy.trim.minTrimGain
      && now >= run.trim?.pauseOver(policy.trim) ?? .zero
  }

  func considerTrim(_ next: inout EarliestDeadline) {
    next.consider(trimDueAt)
    next.consider(run.trim?.giveUpAt)
    next.consider(run.trim?.pauseOver(policy.trim))
  }
}
