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
  /// The memory that is in swap.
  var swapped = ByteCount.zero
  var swappedBefore = ByteCount.zero
  /// The number of trims that moved memory.
  var count = 0
  /// The last trim that moved memory, or the last fill. `nil`: there was none.
  var lastAt: Instant?
  /// The result of the last trim, unless a fill came after it.
  var last: TrimResult?
  /// How much memory the last trim moved to swap.
  var moved = ByteCount.zero
  /// How much of `moved` has come back.
  var cameBack = ByteCount.zero
  /// The time after the trim when more than a third of `moved` was seen to have come back.
  var cameBackAfter: Duration?
  /// The memory in RAM half a minute after the last trim, which the worker needs all the time.
  var needed = ByteCount.zero
  /// How often the shortest time between two trims has doubled.
  var doublings = 0
  var permanentRefusal: String?
  /// Why the last trim failed. `nil`: it didn't.
  var failure: String?
  /// When the last trim failed. The ladder waits for `retry` then, the policy as after a trim.
  var failedAt: Instant?

  /// A trim of which more than this share comes back isn't worth its cost.
  static let maxReturn = 3
  /// The time after a trim in which the memory that comes back is needed all the time.
  static let settling = Duration.seconds(30)
  /// With this many doublings, the policy doesn't trim the worker any more in this run.
  static let maxDoublings = 6
  /// The mechanism ends an operation before that time, with whatever it has moved until then.
  static let timeout = Duration.seconds(60)
  static let retry = Duration.seconds(60)

  /// Whether an operation is under way, or will begin as soon as possible.
  var isPending: Bool {
    underWay != nil || isWanted || !trimRequests.isEmpty || !fillRequests.isEmpty
  }

  var hasGivenUp: Bool { doublings >= Self.maxDoublings }

  /// The shortest time between two trims by the policy.
  func interval(_ rules: TrimRules) -> Duration { rules.every * (1 << min(doublings, 16)) }

  /// When the policy tries again after a failure.
  func retryAt(_ rules: TrimRules) -> Instant? {
    failedAt.map { $0 + max(interval(rules), Self.retry) }
  }

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

  mutating func didTrim(_ result: TrimResult, at now: Instant) {
    // A trim whose memory didn't come back too soon makes up for earlier ones.
    if last != nil, cameBackAfter == nil { doublings = 0 }
    count += 1
    lastAt = now
    last = result
    swapped = result.swapped
    moved = max(.zero, result.swapped - swappedBefore)
    cameBack = .zero
    cameBackAfter = nil
    needed = result.residentAfter
    failure = nil
    failedAt = nil
  }

  /// Records that a fill or a hibernation has moved all of the worker's memory: the last trim
  /// can't be compared with later measurements.
  mutating func didMoveAll(swapped: ByteCount) {
    self.swapped = swapped
    last = nil
    (moved, cameBack, needed) = (.zero, .zero, .zero)
    cameBackAfter = nil
  }

  /// Compares a new measurement with the last trim.
  ///
  /// - Parameter resident: the part of the footprint that is in RAM.
  mutating func measured(resident: ByteCount, _ rules: TrimRules, at now: Instant) {
    guard underWay == nil, let last, let lastAt else { return }
    if now <= lastAt + Self.settling { needed = max(needed, resident) }
    // Memory that the worker has freed leaves swap without coming back.
    let returned = min(last.swapped - swapped, resident - last.residentAfter)
    cameBack = min(max(cameBack, returned), moved)
    guard cameBackAfter == nil, moved > .zero, cameBack.bytes > moved.bytes / Int64(Self.maxReturn)
    else { return }
    cameBackAfter = now - lastAt
    if now - lastAt < interval(rules) { doublings += 1 }
  }
}

extension TrimRules {
  /// The smallest amount of memory for which a worker is trimmed: a page at least.
  var leastGain: ByteCount { max(minGain, .kilobytes(4)) }
}

extension WorkerRecord {
  /// The part of the footprint that is in RAM, by the last measurement.
  var resident: ByteCount { max(.zero, footprint - (run.trim?.swapped ?? .zero)) }

  /// How much memory a trim is expected to move out of RAM.
  var expectedTrimGain: ByteCount { max(.zero, resident - (run.trim?.needed ?? .zero)) }

  /// Whether the ladder waits for a trim of the worker.
  var isTrimmedSoon: Bool { run.trim?.isWanted == true || run.trim?.underWay == .trim }

  var isTrimming: Bool { run.trim?.underWay != nil }

  /// When the policy trims the worker, if the gain is large enough then. `nil`: never.
  var trimDueAt: Instant? {
    guard let after = policy.trim.after, mayBeTrimmed, profile.leader == nil,
      run.trim?.hasGivenUp != true
    else { return nil }
    let first = run.runningSince + after
    guard let trim = run.trim else { return first }
    let next = trim.lastAt.map { $0 + trim.interval(policy.trim) } ?? first
    return max(first, next, trim.retryAt(policy.trim) ?? first)
  }

  /// Whether anything but the time and the gain prevents a trim by the policy or the ladder.
  var mayBeTrimmed: Bool {
    (state == .foreground || state == .background) && policy.trim.mechanism != .off
      && run.trim?.permanentRefusal == nil
  }

  /// Whether the ladder may trim the worker, apart from the time since its last trim.
  var isTrimmable: Bool {
    mayBeTrimmed && !isTrimming && goal == nil
      && expectedTrimGain >= policy.trim.leastGain
  }

  func considerTrim(_ next: inout EarliestDeadline) {
    next.consider(trimDueAt)
    next.consider(run.trim?.giveUpAt)
  }
}
