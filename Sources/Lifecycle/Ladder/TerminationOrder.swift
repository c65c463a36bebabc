import Policy

extension Engine {
  /// Every live worker by `terminate.order`, the first to be terminated first. Ranking gives a list and
  /// not one name, because the first may not die.
  public func terminationOrder() -> [WorkerID] { living().map { workers[$0].id } }

  /// The indices of every live worker, in that order.
  func living() -> [Int] {
    terminationKeys(workers.indices.filter { workers[$0].state.isAlive })
      .sorted { $0.key < $1.key }.map(\.index)
  }

  /// The first to be terminated first, for callers that need a few of them.
  func victimsFirst(_ indices: [Int]) -> PartialHeap<OrderKey> {
    PartialHeap(terminationKeys(indices))
  }

  /// By `hibernate.order`, ties by name.
  func sleepersFirst(_ indices: [Int]) -> PartialHeap<OrderKey> {
    PartialHeap(keys(of: indices, order: policy.hibernate.order, hibernationRank))
  }

  /// Of equal workers, the longest unused is first.
  private func terminationKeys(_ indices: [Int]) -> [(key: OrderKey, index: Int)] {
    keys(of: indices, order: policy.terminate.order + [.recency], rank)
  }

  private func keys(
    of indices: [Int], order: [TerminationRules.Criterion],
    _ rank: (WorkerRecord, TerminationRules.Criterion) -> Int64
  ) -> [(key: OrderKey, index: Int)] {
    var criteria: [TerminationRules.Criterion] = []
    for criterion in order where !criteria.contains(criterion) { criteria.append(criterion) }
    return indices.map { index in
      var key = OrderKey(name: index)
      let standing = workers.standing(index, at: now)
      for place in criteria.indices {
        key.values[place] =
          standing.rank(by: criteria[place], at: now)
          ?? rank(workers[index], criteria[place])
      }
      return (key, index)
    }
  }

  /// The rank by one criterion; the smaller number comes first.
  func rank(of worker: WorkerRecord, by criterion: TerminationRules.Criterion) -> Int64 {
    switch criterion {
    case .band, .footprint, .recency:
      RankKey(worker, at: now).rank(by: criterion, at: now) ?? 0
    case .regret: Self.rank(regretTerms(of: worker))
    case .relaunchCost: (worker.launchCost ?? .zero).wholeNanoseconds
    }
  }

  /// The same for `hibernate.order`, where the cost of a return is a resume.
  func hibernationRank(
    of worker: WorkerRecord, by criterion: TerminationRules.Criterion
  ) -> Int64 {
    switch criterion {
    case .band, .footprint, .recency: rank(of: worker, by: criterion)
    case .regret: Self.rank(resumeRegretTerms(of: worker))
    case .relaunchCost: expectedResume(of: worker).wholeNanoseconds
    }
  }

  /// The bits of numbers from zero on are in the order of the numbers.
  private static func rank(_ terms: RegretTerms) -> Int64 {
    Int64(bitPattern: max(0, terms.value).bitPattern)
  }

  /// A foreground worker counts as in use.
  func lastUse(of worker: WorkerRecord) -> Instant {
    worker.state == .foreground ? now : worker.lastUsed
  }
}

extension RankKey {
  /// `nil`: the record is needed to find it. A foreground worker counts as in use.
  func rank(by criterion: TerminationRules.Criterion, at now: Instant) -> Int64? {
    switch criterion {
    case .band: Int64(band)
    case .footprint: -footprint.bytes
    case .recency: (isInFront ? now : lastUsed).nanoseconds
    case .regret, .relaunchCost: nil
    }
  }
}

/// A worker's place in an order as numbers: comparing them costs nothing compared with looking two
/// workers up.
struct OrderKey: Comparable {
  /// By criterion, the first that differs deciding; there is room for six of them.
  var values = InlineArray<6, Int64>(repeating: 0)
  /// Workers are sorted by name, so the index stands for it.
  var name: Int

  init(name: Int) { self.name = name }

  static func < (left: OrderKey, right: OrderKey) -> Bool {
    for place in left.values.indices where left.values[place] != right.values[place] {
      return left.values[place] < right.values[place]
    }
    return left.name < right.name
  }

  static func == (left: OrderKey, right: OrderKey) -> Bool {
    !(left < right) && !(right < left)
  }
}
