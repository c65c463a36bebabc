import Policy

extension Engine {
  /// Everybody alive, first to go first, by `terminate.order`. Ranking gives a list and not one
  /// name, because the first may not die.
  public func terminationOrder() -> [WorkerID] { living().map { workers[$0].id } }

  /// The indices of everybody alive, in that order.
  func living() -> [Int] {
    terminationKeys(workers.indices.filter { workers[$0].state.isAlive })
      .sorted { $0.key < $1.key }.map(\.index)
  }

  /// The same as a queue, for whoever needs the first few.
  func ranking(_ indices: [Int]) -> Ranking<TerminationKey> { Ranking(terminationKeys(indices)) }

  private func terminationKeys(_ indices: [Int]) -> [(key: TerminationKey, index: Int)] {
    let criteria = terminationCriteria
    return indices.map { index in
      var key = TerminationKey(name: index)
      for (place, criterion) in criteria.enumerated() {
        key.values[place] = rank(of: workers[index], by: criterion)
      }
      return (key, index)
    }
  }

  /// Those of the policy, each once, then recency, and at last the name.
  private var terminationCriteria: [TerminationRules.Criterion] {
    var criteria: [TerminationRules.Criterion] = []
    for criterion in policy.terminate.order + [.recency] where !criteria.contains(criterion) {
      criteria.append(criterion)
    }
    return criteria
  }

  /// By one criterion; the smaller number goes first.
  func rank(of worker: WorkerRecord, by criterion: TerminationRules.Criterion) -> Int64 {
    switch criterion {
    case .band: Int64(worker.band)
    case .footprint: -worker.footprint.bytes
    case .recency: lastUse(of: worker).nanoseconds
    case .relaunchCost: (worker.launchCost ?? .zero).wholeNanoseconds
    }
  }

  /// Who is in front is in use.
  func lastUse(of worker: WorkerRecord) -> Instant {
    worker.state == .foreground ? now : worker.lastUsed
  }
}

/// What `terminate.order` says of a worker, as numbers: comparing them costs nothing beside looking
/// two workers up.
struct TerminationKey: Comparable {
  /// By criterion, the first that differs deciding; there is room for six of them.
  var values = InlineArray<6, Int64>(repeating: 0)
  /// Workers are sorted by name, so the index stands for it.
  var name: Int

  init(name: Int) { self.name = name }

  static func < (left: TerminationKey, right: TerminationKey) -> Bool {
    for place in left.values.indices where left.values[place] != right.values[place] {
      return left.values[place] < right.values[place]
    }
    return left.name < right.name
  }

  static func == (left: TerminationKey, right: TerminationKey) -> Bool {
    !(left < right) && !(right < left)
  }
}
