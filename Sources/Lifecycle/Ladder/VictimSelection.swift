import Policy

// `terminate suspended|background|foreground`: one at a time, in the order of termination.

extension Engine {
  /// A victim frees at least this much: less helps no one, and costs the worker's state. The default of
  /// `hibernate.min_footprint` is the same. A hibernated worker usually holds less.
  static let minYield = ByteCount.megabytes(1)

  mutating func terminateFirst(
    of victims: Ladder.Rung.Victims, _ level: PressureLevel
  ) -> LadderState.Outcome {
    if victims == .foreground, !workers.isEmpty(victims.group), othersMayStillGive(at: level) {
      return .waiting
    }
    guard !workers.isEmpty(victims.openGroup) else { return .nothingLeft }
    let group = workers.indices(victims.group)
    workers.renewStandings(group, at: now)
    var candidates = victimsFirst(group)
    while let index = candidates.popFirst() {
      let why = reason(for: index, before: candidates.first, victims)
      if isShadow(index) {
        if countShadowTermination(index, why) { return .acted }
        continue
      }
      openBurst(at: level)
      ladderState.burst?.victims[workers[index].id] = JetsamBurst.Victim(why: why)
      terminateForMemory(index, level)
      return .acted
    }
    return .nothingLeft
  }

  mutating func terminateForMemory(_ index: Int, _ level: PressureLevel) {
    beginEnding(index, .pressure(level), gracefully: workers[index].state != .hibernated)
    let until = workers[index].run.ending?.giveUpAt ?? now + LadderState.patience
    ladderState.step = .terminating(workers[index].id, until: until)
  }

  /// Somebody between two states will soon be where a cheaper rung finds it.
  private func othersMayStillGive(at level: PressureLevel) -> Bool {
    let hasCheaperRung = policy.ladder[level].contains {
      $0 == .hibernate || $0 == .terminate(.suspended) || $0 == .terminate(.background)
    }
    let isOnTheWay = workers.contains(.inTransit) { worker in
      worker.footprint >= Self.minYield && now < worker.since + LadderState.patience
    }
    if hasCheaperRung && isOnTheWay { return true }
    return workers.contains(.terminating) { worker in
      worker.footprint >= Self.minYield && worker.run.ending?.hasGivenUp == false
    }
  }

  private func reason(
    for index: Int, before next: Int?, _ victims: Ladder.Rung.Victims
  ) -> String {
    let worker = workers[index]
    guard let next else {
      return "the only one left with memory to give (\(worker.footprint)) among \(victims.spoken)"
    }
    return
      "\(grounds(worker, before: workers[next], policy.terminate.order).sentence) among \(victims.spoken)"
  }

  /// What was compared until something differed.
  func grounds(
    _ worker: WorkerRecord, before next: WorkerRecord, _ order: [TerminationRules.Criterion]
  ) -> Verdict {
    var grounds: [String] = []
    // The last one decided; where all are equal, the name did.
    var code = "name"
    for criterion in order {
      grounds.append(ground(worker, criterion))
      if rank(of: worker, by: criterion) != rank(of: next, by: criterion) {
        code = criterion.rawValue
        break
      }
    }
    return Verdict(code: code, sentence: grounds.joined(separator: " and "))
  }

  func ground(_ worker: WorkerRecord, _ criterion: TerminationRules.Criterion) -> String {
    switch criterion {
    case .band: "lowest band (\(worker.band(at: now)))"
    case .footprint: "the biggest footprint (\(worker.footprint))"
    case .recency: "the longest unused (\((now - lastUse(of: worker)).spoken))"
    case .relaunchCost: "the cheapest relaunch (\((worker.launchCost ?? .zero).spoken))"
    case .regret: "the least regret (\(regretTerms(of: worker).sentence))"
    }
  }
}

extension Ladder.Rung.Victims {
  fileprivate var spoken: String {
    switch self {
    case .suspended: "the suspended"
    case .background: "those in the background"
    case .foreground: "those in the foreground"
    }
  }
}
