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
    case .band: order(left.band(at: now), right.band(at: now))
    case .footprint: order(right.footprint, left.footprint)
    case .recency: order(lastUse(of: left), lastUse(of: right))
    case .regret: order(regret(of: left), regret(of: right))
    case .relaunchCost: order(left.launchCost ?? .zero, right.launchCost ?? .zero)
    }
  }

  /// Who is hibernated first under pressure, by `hibernate.order`; ties go to the name.
  func isHibernatedBefore(_ left: Int, _ right: Int) -> Bool {
    let (left, right) = (workers[left], workers[right])
    for criterion in policy.hibernate.order {
      let order = compareForHibernation(left, right, by: criterion)
      if order != 0 { return order < 0 }
    }
    return left.id < right.id
  }

  func compareForHibernation(
    _ left: WorkerRecord, _ right: WorkerRecord, by criterion: TerminationRules.Criterion
  ) -> Int {
    switch criterion {
    case .band, .footprint, .recency: compare(left, right, by: criterion)
    case .relaunchCost: order(expectedResume(of: left), expectedResume(of: right))
    case .regret:
      order(resumeRegretTerms(of: left).value, resumeRegretTerms(of: right).value)
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
