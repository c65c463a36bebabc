import Policy

extension Engine {
  /// Everybody alive, first to go first, by `terminate.order`. Ranking gives a list and not one
  /// name, because the first may not die.
  public func terminationOrder() -> [WorkerID] {
    ranked(workers.indices.filter { workers[$0].state.isAlive }).map { workers[$0].id }
  }

  func ranked(_ indices: [Int]) -> [Int] {
    indices.sorted { goesBefore(workers[$0], workers[$1]) }
  }

  private func goesBefore(_ left: WorkerRecord, _ right: WorkerRecord) -> Bool {
    for criterion in policy.terminate.order {
      let order = compare(left, right, by: criterion)
      if order != 0 { return order < 0 }
    }
    let order = compare(left, right, by: .recency)
    return order == 0 ? left.id < right.id : order < 0
  }

  /// Negative: the left one goes first.
  func compare(
    _ left: WorkerRecord, _ right: WorkerRecord, by criterion: TerminationRules.Criterion
  ) -> Int {
    switch criterion {
    case .band: order(left.band, right.band)
    case .footprint: order(right.footprint, left.footprint)
    case .recency: order(lastUse(of: left), lastUse(of: right))
    case .relaunchCost: order(left.launchCost ?? .zero, right.launchCost ?? .zero)
    }
  }

  private func order<Value: Comparable>(_ left: Value, _ right: Value) -> Int {
    left == right ? 0 : (left < right ? -1 : 1)
  }

  /// Who is in front is in use.
  func lastUse(of worker: WorkerRecord) -> Instant {
    worker.state == .foreground ? now : worker.lastUsed
  }
}
