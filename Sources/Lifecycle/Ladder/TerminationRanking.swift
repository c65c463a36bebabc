import Policy

/// The order of termination, with the numbers behind each position: the answer to `explain --next`.
public struct Ranking: Hashable, Sendable {
  /// The pressure level now.
  public var level: PressureLevel
  /// The criteria of `terminate.order`.
  public var terminationOrder: [TerminationRules.Criterion]
  /// The live workers, the first to be terminated first.
  public var termination: [Entry]
  /// The criteria of `hibernate.order`.
  public var hibernationOrder: [TerminationRules.Criterion]
  /// The suspended workers, the first to be hibernated first.
  public var hibernation: [Entry]

  /// One worker's position, and the numbers behind it.
  public struct Entry: Hashable, Sendable {
    public var worker: WorkerID
    public var state: WorkerState
    /// The worker's band, with its terms.
    public var band: BandTerms
    public var footprint: ByteCount
    /// The time since the last use; zero in the foreground.
    public var sinceUse: Duration
    /// The learned time of a launch. `nil`: it isn't known.
    public var launchCost: Duration?
    /// In the order of termination the regret of a relaunch, in the order of hibernation that of a
    /// resume.
    public var regret: RegretTerms
    /// Why the worker is before the next one. `nil`: it is the last.
    public var before: Verdict?
    /// The lowest pressure level at which the worker may be terminated. `nil`: no level terminates
    /// it.
    public var level: PressureLevel?
    /// The time after which its band or its regret changes without an event. `nil`: time alone
    /// changes neither.
    public var changesIn: Duration?
    /// What prevents its termination now.
    public var obstacles: [Obstacle]
  }
}

extension Engine {
  /// Both orders, with the numbers behind each position.
  ///
  /// - Parameter now: the time of the question; `nil`: the time of the last event.
  public func ranking(at now: Instant? = nil) -> Ranking {
    var engine = self
    // Ages and bonuses are those at the time of the question.
    engine.now = max(self.now, now ?? self.now)
    return engine.ranking()
  }

  private func ranking() -> Ranking {
    let alive = liveWorkers()
    let asleep = sleepersFirst(workers.indices.filter { workers[$0].state == .suspended })
    return Ranking(
      level: gauge.level, terminationOrder: policy.terminate.order,
      termination: alive.indices.map { entry(in: alive, at: $0) },
      hibernationOrder: policy.hibernate.order,
      hibernation: asleep.indices.map { sleeperEntry(in: asleep, at: $0) })
  }

  private func entry(in order: [Int], at position: Int) -> Ranking.Entry {
    let worker = workers[order[position]]
    var obstacles: [Obstacle] = []
    if worker.resident < Self.minYield {
      obstacles.append(
        Obstacle(
          "too_small",
          "it has \(worker.resident) in RAM, under \(Self.minYield): too little to gain",
          key: nil, measured: worker.resident, limit: Self.minYield))
    }
    if worker.state.isTransit || worker.state == .terminating {
      obstacles.append(Obstacle("in_transit", "it is \(worker.state.text)", key: nil))
    }
    let level = levelOfTermination(worker)
    if !worker.profile.mayBeTerminated {
      obstacles.append(
        Obstacle(
          "not_permitted",
          "another program supervises it and did not permit termination (--may-terminate)",
          key: nil))
    }
    if let protection = worker.protection {
      obstacles.append(
        Obstacle(protection.code, protection.sentence, key: protection.key?.path))
    }
    if level == nil, obstacles.isEmpty {
      obstacles.append(
        Obstacle("no_rung", "no rung of the ladder terminates workers in its state", key: "ladder"))
    }
    if isShadow(worker) {
      obstacles.append(
        Obstacle("shadow_mode", "shadow mode: decisions are logged, not applied", key: "mode"))
    }
    return Ranking.Entry(
      worker: worker.id, state: worker.state, band: worker.bandTerms(at: now),
      footprint: worker.footprint, sinceUse: now - worker.lastUse(at: now),
      launchCost: worker.launchCost, regret: worker.relaunchRegret(at: now),
      before: position + 1 < order.count
        ? grounds(worker, before: workers[order[position + 1]], policy.terminate.order) : nil,
      level: level,
      changesIn: [worker.bandChangesAt(now), worker.regretChangesAt(now)].compactMap { $0 }.min()
        .map { $0 - now },
      obstacles: obstacles)
  }

  private func sleeperEntry(in order: [Int], at position: Int) -> Ranking.Entry {
    let worker = workers[order[position]]
    let levels = PressureLevel.allCases.filter { policy.ladder[$0].contains(.hibernate) }
    var result = entry(in: order, at: position)
    result.regret = resumeRegretTerms(of: worker)
    result.level = levels.first
    result.obstacles = obstacles(worker, to: .pressure, at: now).map(\.described)
    if position + 1 < order.count {
      result.before = hibernationGrounds(worker, before: workers[order[position + 1]])
    }
    return result
  }

  private func hibernationGrounds(_ worker: WorkerRecord, before next: WorkerRecord) -> Verdict {
    for criterion in policy.hibernate.order
    where hibernationRank(of: worker, by: criterion) != hibernationRank(of: next, by: criterion) {
      let sentence = criterion == .relaunchCost ? "quicker resume" : criterion.whereLess
      return Verdict(code: criterion.rawValue, sentence: sentence)
    }
    return Verdict(code: "name", sentence: "first by name")
  }
}
