import Policy

// What the ladder does next: the first rung of the level that has somebody on it.

extension Engine {
  mutating func takeStep(_ level: PressureLevel) -> Climb.Outcome {
    guard !shadowIsSatisfied(level) else { return .nothingLeft }
    for rung in rungs(of: level) {
      refresh()
      let outcome =
        switch rung {
        case .hibernate: hibernateBiggest(level)
        case .warn: warnEverybody(level)
        case .terminate(let victims): terminateFirst(of: victims, level)
        // No worker can offer purgeable memory yet.
        case .purge: Climb.Outcome.nothingLeft
        }
      if outcome != .nothingLeft { return outcome }
    }
    return .nothingLeft
  }

  /// The foreground comes last, wherever a policy lists it.
  private func rungs(of level: PressureLevel) -> [Ladder.Rung] {
    let rungs = policy.ladder[level]
    let last = Ladder.Rung.terminate(.foreground)
    return rungs.filter { $0 != last } + rungs.filter { $0 == last }
  }

  private mutating func hibernateBiggest(_ level: PressureLevel) -> Climb.Outcome {
    var biggestFirst = Ranking(
      workers.indices(.hibernatable).map { (SizeKey(-workers[$0].footprint.bytes, $0), $0) })
    var outcome = Climb.Outcome.nothingLeft
    while let index = biggestFirst.popFirst() {
      switch workers[index].obstacle(to: .pressure, at: now) {
      case .measuring?: outcome = .waiting
      case nil where isShadow(index):
        if noteShadowHibernation(index, level) { return .acted }
      case nil:
        hibernate(index, .pressure(level))
        climb.step = .hibernating(workers[index].id, until: now + Climb.patience)
        return .acted
      default: break
      }
    }
    return outcome
  }

  private mutating func warnEverybody(_ level: PressureLevel) -> Climb.Outcome {
    var longest: Duration?
    for index in workers.indices(.warnable).sorted() {
      workers[index].warnedIn = gauge.episode
      if isShadow(index) {
        let name = workers[index].id
        emit(.wouldHave(name, "\(name) would have been warned: the pressure is \(level.name)"))
      } else {
        workers[index].run.owesWarning = true
        longest = max(longest ?? .zero, workers[index].policy.background.shedDeadline)
      }
    }
    guard let longest else { return .nothingLeft }
    // One request may be in flight already, and each must still be finished.
    climb.step = .warning(until: now + longest + longest + Climb.patience)
    return .acted
  }
}

// Shadow mode on the ladder: the memory isn't freed, so what would have been is counted, lest
// everybody would have been terminated.
extension Engine {
  private func shadowIsSatisfied(_ level: PressureLevel) -> Bool {
    guard policy.mode == .shadow, climb.shadowFreed > .zero else { return false }
    guard let limit = policy.pressure[level]?.availableBelow else { return true }
    return !isShort(of: limit, credit: climb.shadowFreed)
  }

  /// Whether this was the engine's step.
  private mutating func noteShadowHibernation(_ index: Int, _ level: PressureLevel) -> Bool {
    guard !workers[index].notes.contains(.hibernation) else { return false }
    note(index, .hibernation, "would have been hibernated: the pressure is \(level.name)")
    return countShadowStep(index)
  }

  mutating func noteShadowTermination(_ index: Int, _ why: String) -> Bool {
    guard workers[index].sparedIn != gauge.episode else { return false }
    workers[index].sparedIn = gauge.episode
    let name = workers[index].id
    emit(.wouldHave(name, "\(name) would have been terminated: \(why)"))
    return countShadowStep(index)
  }

  private mutating func countShadowStep(_ index: Int) -> Bool {
    guard policy.mode == .shadow else { return false }
    climb.shadowFreed += workers[index].footprint
    climb.settleUntil = now + policy.terminate.settle
    return true
  }
}

/// The bigger one first; of two that are as big, by name.
private struct SizeKey: Comparable {
  var negatedBytes: Int64
  var index: Int

  init(_ negatedBytes: Int64, _ index: Int) {
    self.negatedBytes = negatedBytes
    self.index = index
  }

  static func < (left: SizeKey, right: SizeKey) -> Bool {
    (left.negatedBytes, left.index) < (right.negatedBytes, right.index)
  }
}
