import Policy

extension Engine {
  /// The live workers by `terminate.order`, the first to be terminated first. It is a list and not
  /// one name, because the first may not die.
  public func terminationOrder() -> [WorkerID] { liveWorkers().map { workers[$0].id } }

  /// The indices of the live workers by `terminate.order`. They are ranked from their records, for
  /// callers that may change nothing; the ladder uses `TerminationIndex`.
  func liveWorkers() -> [Int] {
    let criteria = policy.terminate.criteria
    let alive = workers.indices.filter { workers[$0].state.isAlive }
    let keys = alive.map { index in
      OrderKey(name: index, criteria) { workers[index].rank(by: $0, at: now) }
    }
    return keys.sorted().map(\.name)
  }

  /// These workers by `hibernate.order`, ties by name.
  func sleepersFirst(_ indices: [Int]) -> [Int] {
    let criteria = policy.hibernate.order.withoutRepetition
    return indices.map { sleeperKey($0, criteria) }.sorted().map(\.name)
  }

  /// The rank by one criterion of `hibernate.order`. The cost of a return is that of a resume. The
  /// smaller number is first.
  func hibernationRank(
    of worker: WorkerRecord, by criterion: TerminationRules.Criterion
  ) -> Int64 {
    switch criterion {
    case .band, .footprint, .recency: worker.rank(by: criterion, at: now)
    case .regret: resumeRegretTerms(of: worker).rank
    case .relaunchCost: expectedResume(of: worker).wholeNanoseconds
    }
  }
}

extension WorkerRecord {
  /// When the worker was last used. A foreground worker counts as in use.
  func lastUse(at now: Instant) -> Instant { state == .foreground ? now : lastUsed }

  /// The rank by one criterion of `terminate.order`. The smaller number is first.
  func rank(by criterion: TerminationRules.Criterion, at now: Instant) -> Int64 {
    switch criterion {
    case .band: Int64(band(at: now))
    case .footprint: -footprint.bytes
    case .recency: lastUse(at: now).nanoseconds
    case .regret: relaunchRegret(at: now).rank
    case .relaunchCost: (launchCost ?? .zero).wholeNanoseconds
    }
  }
}

extension RegretTerms {
  /// The bits of a nonnegative number, which are in the order of the numbers.
  fileprivate var rank: Int64 { Int64(bitPattern: max(0, value).bitPattern) }
}

extension TerminationRules {
  /// The criteria that decide: those of the order, and among equal workers the longest unused
  /// first.
  var criteria: [Criterion] { (order + [.recency]).withoutRepetition }
}

extension [TerminationRules.Criterion] {
  var withoutRepetition: [TerminationRules.Criterion] {
    var criteria: [TerminationRules.Criterion] = []
    for criterion in self where !criteria.contains(criterion) { criteria.append(criterion) }
    return criteria
  }
}

/// A worker's position in an order, as numbers: comparing two keys is far cheaper than reading two
/// workers.
struct OrderKey: Comparable {
  /// The rank by each criterion; the first that differs decides. There is room for six criteria.
  var values = InlineArray<6, Int64>(repeating: 0)
  /// The worker's index, which stands for its name because workers are sorted by name.
  var name: Int

  init(
    name: Int, _ criteria: [TerminationRules.Criterion],
    rank: (TerminationRules.Criterion) -> Int64
  ) {
    self.name = name
    for index in criteria.indices { values[index] = rank(criteria[index]) }
  }

  static func < (left: OrderKey, right: OrderKey) -> Bool {
    for index in left.values.indices where left.values[index] != right.values[index] {
      return left.values[index] < right.values[index]
    }
    return left.name < right.name
  }

  static func == (left: OrderKey, right: OrderKey) -> Bool {
    !(left < right) && !(right < left)
  }
}
