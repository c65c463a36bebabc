import Policy

// The ladder's next step: the first rung of the level that applies to a worker.

extension Engine {
  mutating func performStep(_ level: PressureLevel) -> LadderState.Outcome {
    guard !shadowIsSatisfied(level) else { return .nothingLeft }
    var mustWait = false
    for rung in policy.ladder.steps(at: level) {
      refresh()
      if case .terminate(let victims) = rung, !workers.isEmpty(victims.openGroup),
        hibernateSpared(level) == .acted
      {
        return .acted
      }
      let outcome: LadderState.Outcome
      switch rung {
      case .hibernate: outcome = hibernateNext(level, makingRoom: mayEndWorkers(at: level))
      case .warn: outcome = warnAll(level)
      // It takes a second or more, and memory could be used up meanwhile.
      case .trim where endsWorkersNow(level): outcome = .nothingLeft
      case .trim: outcome = trimLargest(level)
      case .purge: outcome = purgeLargest(level)
      case .terminate(let victims) where mayTerminate(victims, at: level):
        outcome = terminateFirst(of: victims, level)
      // Meanwhile the rungs that cost no worker its state are used, also those listed after it.
      case .terminate(let victims):
        outcome = .nothingLeft
        mustWait = mustWait || !workers.isEmpty(victims.openGroup)
      }
      if outcome != .nothingLeft { return outcome }
    }
    return mustWait ? .waiting : .nothingLeft
  }

  /// Hibernates the first eligible worker in the order of hibernation.
  ///
  /// - Parameter makingRoom: whether images of other workers may be removed from the disk, with
  ///   their workers, if there is no room.
  mutating func hibernateNext(
    _ level: PressureLevel, makingRoom: Bool
  ) -> LadderState.Outcome {
    workers.sleepers.reconsider(room: diskRoom, resumeRate)
    rankSleepers()
    while let slot = workers.sleepers.order.first {
      let index = workers.index(ofSlot: slot)
      if let verdict = verdict(on: index) {
        workers.sleepers.set(verdict, of: slot, isSpared: isSpared(index))
      } else if isShadow(index) {
        if countShadowHibernation(index, level) { return .acted }
        // Its record has changed, so it is ranked again if it is still to be examined.
        workers.sleepers.order.remove(slot)
      } else {
        hibernate(index, .pressure(level))
        ladderState.step = .hibernating(workers[index].id, until: now + LadderState.timeout)
        return .acted
      }
    }
    if !workers.sleepers.measuring.isEmpty { return .waiting }
    // Fewer images don't help if today's writes are used up.
    if makingRoom, let image = workers.sleepers.withoutRoom.first?.key, image <= writableToday {
      return makeRoomOnDisk(for: image, level)
    }
    return .nothingLeft
  }

  /// Hibernates a worker that only economic limits keep in memory, such as its policy's
  /// `max_footprint`, because a worker would be terminated otherwise.
  mutating func hibernateSpared(_ level: PressureLevel) -> LadderState.Outcome {
    guard policy.ladder.steps(at: level).contains(.hibernate),
      isSet(level) || isReallyShort(at: level)
    else { return .nothingLeft }
    let criteria = policy.hibernate.order.withoutRepetition
    let room = diskRoom
    let candidates = workers.sleepers.spared.members.map { workers.index(ofSlot: Int($0)) }
      .filter { workers[$0].expectedImage <= room && !workers[$0].notes.contains(.hibernation) }
    let keys = candidates.map { sleeperKey($0, criteria) }
    guard let first = keys.min()?.name else { return .nothingLeft }
    if isShadow(first) {
      return countShadowHibernation(first, level) ? .acted : .nothingLeft
    }
    hibernate(first, .pressure(level))
    ladderState.step = .hibernating(workers[first].id, until: now + LadderState.timeout)
    return .acted
  }

  private func verdict(on index: Int) -> SleeperVerdict? {
    if let imagined = workers[index].imagined { return verdict(on: imagined) }
    return verdict(on: workers[index])
  }

  /// Whether only economic limits keep the worker in memory, and there is something to free.
  private func isSpared(_ index: Int) -> Bool {
    let worker = workers[index].imagined ?? workers[index]
    return worker.movable >= Self.minYield
      && obstacle(worker, to: .insteadOfEnd, besidesDisk: true) == nil
  }

  /// What prevents the worker's hibernation. `nil`: it can be hibernated now.
  private func verdict(on worker: WorkerRecord) -> SleeperVerdict? {
    if let obstacle = obstacle(worker, to: .pressure, besidesDisk: true) {
      return verdict(obstacle, on: worker)
    }
    let image = worker.expectedImage
    return image > diskRoom ? .lacksRoom(image: image) : nil
  }

  /// Whether the worker was warned in this episode. If the policy wants a warning for each level,
  /// one at a lower level doesn't count.
  private func isWarned(_ worker: WorkerRecord, at level: PressureLevel) -> Bool {
    guard let warned = worker.warnedIn, warned.episode == gauge.episode else { return false }
    return policy.pressure.warnOncePer == .episode || warned.level >= level
  }

  /// The workers to warn, and those of them whose last answer freed something. The others are asked
  /// only when these haven't freed enough.
  private func unwarned(at level: PressureLevel) -> (all: [Int], promising: [Int]) {
    let all = workers.indices(.warnable).sorted().filter { !isWarned(workers[$0], at: level) }
    return (all, all.filter { workers[$0].run.fruitless == nil })
  }

  private mutating func warnAll(_ level: PressureLevel) -> LadderState.Outcome {
    guard !workers.isEmpty(.warnable) else { return .nothingLeft }
    let (unwarned, promising) = unwarned(at: level)
    var longest: Duration?
    for index in promising.isEmpty ? unwarned : promising {
      workers[index].warnedIn = PressureEpisode(episode: gauge.episode, level: level)
      if isShadow(index) {
        reportImagined(index, "been warned: \(Cause.pressure(level).sentence)")
      } else {
        workers[index].run.owesWarning = true
        longest = max(longest ?? .zero, workers[index].policy.background.shedDeadline)
      }
    }
    guard let longest else { return promising.isEmpty ? .nothingLeft : warnAll(level) }
    // One request may be in flight already, and each must still be finished.
    ladderState.step = .warning(until: now + longest + longest + LadderState.timeout)
    return .acted
  }
}

// Shadow mode on the ladder: the memory isn't freed, so the memory that would have been freed is
// counted. Otherwise the ladder would have terminated every worker.
extension Engine {
  private func shadowIsSatisfied(_ level: PressureLevel) -> Bool {
    guard policy.mode == .shadow, ladderState.shadowFreed > .zero else { return false }
    // Memory isn't short: the operator set the level, and wants to see every decision.
    if isSet(level) { return false }
    guard let limit = policy.pressure[level]?.availableBelow else { return true }
    return !isShort(of: limit, at: level, credit: ladderState.shadowFreed)
  }

  /// Returns whether this was the engine's step.
  private mutating func countShadowHibernation(_ index: Int, _ level: PressureLevel) -> Bool {
    let text = "been hibernated: \(Cause.pressure(level).sentence)"
    guard reportOnce(index, step: .hibernation, text: text) else { return false }
    countImagined(index, .hibernated)
    return countShadowStep(index)
  }

  mutating func countShadowPurge(_ index: Int, _ level: PressureLevel) -> Bool {
    let offer = workers[index].run.purgeable
    let text = "lost \(offer) of purgeable memory: \(Cause.pressure(level).sentence)"
    guard reportOnce(index, step: .purge, text: text) else { return false }
    workers[index].shadow.summary.freed += offer
    return countShadowStep(index, freed: offer)
  }

  mutating func countShadowTrim(_ index: Int, _ level: PressureLevel) -> Bool {
    let gain = workers[index].expectedTrimGain
    let text = "been trimmed: \(Cause.pressure(level).sentence)"
    guard reportOnce(index, step: .trim, text: text) else { return false }
    return countShadowStep(index, freed: gain)
  }

  mutating func countShadowTermination(
    _ index: Int, _ reason: String, at level: PressureLevel
  ) -> Bool {
    guard workers[index].sparedIn != gauge.episode else { return false }
    workers[index].sparedIn = gauge.episode
    if mayHibernateInsteadOfEnd(workers[index], at: level) {
      return countShadowHibernation(index, level)
    }
    reportImagined(index, "been terminated: \(reason)")
    countImagined(index, .terminated)
    return countShadowStep(index)
  }

  private mutating func countShadowStep(_ index: Int, freed: ByteCount? = nil) -> Bool {
    guard policy.mode == .shadow else { return false }
    ladderState.shadowFreed += freed ?? workers[index].footprint
    ladderState.settleUntil = now + policy.terminate.settle
    return true
  }
}
