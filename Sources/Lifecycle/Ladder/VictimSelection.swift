import Policy

// The rungs `terminate suspended|background|foreground`: one worker at a time, in the order of
// termination.

extension Engine {
  /// The least memory in RAM of a victim: less doesn't help, and costs the worker's state. The
  /// default of `hibernate.min_footprint` is the same. A hibernated worker usually holds less.
  static let minYield = ByteCount.megabytes(1)

  mutating func terminateFirst(
    of victims: Ladder.Rung.Victims, _ level: PressureLevel
  ) -> LadderState.Outcome {
    if victims == .foreground, !workers.isEmpty(victims.group), othersMayStillFree(at: level) {
      return .waiting
    }
    guard !workers.isEmpty(victims.openGroup), canHelp(at: level) else { return .nothingLeft }
    if hibernateRunning(of: victims, at: level) { return .acted }
    workers.rankForTermination(by: policy.terminate, at: now)
    var candidates = Optional(workers.termination.victims(of: victims))
    while let slot = candidates?.popFirst() {
      let index = workers.index(ofSlot: slot)
      let next = candidates?.first.map { workers.index(ofSlot: $0) }
      let choice = reason(for: index, before: next, victims)
      if !isShadow(index), awaitsReadiness(index, at: level) { return .waiting }
      if isShadow(index) {
        if countShadowTermination(index, choice, at: level) { return .acted }
        continue
      }
      // The order is changed in place only if no list of candidates refers to it.
      candidates = nil
      if mustWaitForVeto(index, choice, at: level) { return .waiting }
      openBurst(at: level)
      let reason = choice + outcomeOfNotice(index) + obstacleToHibernation(index)
      ladderState.burst?.victims[workers[index].id] = JetsamBurst.Victim(
        why: reason, resident: workers[index].resident)
      ladderState.before = beforeTermination(of: index, at: level)
      terminateForMemory(index, level)
      return .acted
    }
    return .nothingLeft
  }

  mutating func terminateForMemory(_ index: Int, _ level: PressureLevel) {
    beginEnding(index, .pressure(level), gracefully: workers[index].state != .hibernated)
    let until = workers[index].run.ending?.giveUpAt ?? now + LadderState.timeout
    ladderState.step = .terminating(workers[index].id, until: until)
  }

  /// Why a running worker isn't hibernated instead of terminated, if the policy doesn't show it.
  private func obstacleToHibernation(_ index: Int) -> String {
    let worker = workers[index]
    if worker.state == .launching { return outcomeOfAwaitedReadiness(index) }
    guard worker.state.runs, worker.profile.leader != nil,
      let failure = worker.run.hibernation.lastFailure
    else { return "" }
    return "; its wrapper didn't hibernate it: \(failure)"
  }

  /// Whether workers between two states, or being terminated, may still free memory. A cheaper rung
  /// will apply to them soon.
  private func othersMayStillFree(at level: PressureLevel) -> Bool {
    let hasCheaperRung = policy.ladder.steps(at: level).contains {
      $0 == .hibernate || $0 == .terminate(.suspended) || $0 == .terminate(.background)
    }
    let isOnTheWay = workers.contains(.inTransit) { worker in
      worker.resident >= Self.minYield && now < worker.since + LadderState.timeout
    }
    if hasCheaperRung && isOnTheWay { return true }
    return workers.contains(.terminating) { worker in
      worker.resident >= Self.minYield && worker.run.ending?.hasGivenUp == false
    }
  }

  private func reason(
    for index: Int, before next: Int?, _ victims: Ladder.Rung.Victims
  ) -> String {
    let worker = workers[index]
    guard let next else {
      return "the only \(victims.rawValue) worker left with memory to free (\(worker.resident))"
    }
    let comparison = compared(worker, workers[next], by: policy.terminate.order)
    let grounds = comparison.equal + [comparison.decisive].compactMap { $0 }
    let list = grounds.map { ground(worker, $0) }.joined(separator: ", ")
    return "\(list) among \(victims.rawValue) workers"
  }

  /// Why one worker is before the other: `same band, unused longer`.
  func grounds(
    _ worker: WorkerRecord, before next: WorkerRecord, _ order: [TerminationRules.Criterion]
  ) -> Verdict {
    let comparison = compared(worker, next, by: order)
    let texts =
      comparison.equal.map(\.whereEqual) + [comparison.decisive?.whereLess ?? "first by name"]
    return Verdict(
      code: comparison.decisive?.rawValue ?? "name", sentence: texts.joined(separator: ", "))
  }

  /// The criteria that were compared until one differed. If all are equal, the name decides.
  private func compared(
    _ worker: WorkerRecord, _ next: WorkerRecord, by order: [TerminationRules.Criterion]
  ) -> (equal: [TerminationRules.Criterion], decisive: TerminationRules.Criterion?) {
    let differs = order.firstIndex { worker.rank(by: $0, at: now) != next.rank(by: $0, at: now) }
    return (Array(order[..<(differs ?? order.endIndex)]), differs.map { order[$0] })
  }

  private func ground(_ worker: WorkerRecord, _ criterion: TerminationRules.Criterion) -> String {
    switch criterion {
    case .band: "lowest band (\(worker.band(at: now)))"
    case .footprint: "largest footprint (\(worker.footprint))"
    case .recency: "unused longest (\((now - worker.lastUse(at: now)).text))"
    case .relaunchCost: "cheapest relaunch (\((worker.launchCost ?? .zero).text))"
    case .regret: "lowest regret (\(worker.relaunchRegret(at: now).sentence))"
    }
  }
}

extension TerminationRules.Criterion {
  /// What the first of two workers to be terminated has.
  var whereLess: String {
    switch self {
    case .band: "lower band"
    case .footprint: "larger footprint"
    case .recency: "unused longer"
    case .relaunchCost: "cheaper relaunch"
    case .regret: "lower regret"
    }
  }

  fileprivate var whereEqual: String {
    switch self {
    case .band: "same band"
    case .footprint: "same footprint"
    case .recency: "unused as long"
    case .relaunchCost: "same relaunch time"
    case .regret: "same regret"
    }
  }
}
