import Control
import Lifecycle
import Policy

// These initializers make the reports of `explain` from the engine's reasons.

extension ExplanationReport {
  init(_ explanation: Explanation, at now: Instant) {
    self.init(
      worker: explanation.worker.name, state: explanation.state.rawValue,
      secondsInState: explanation.since.seconds, because: CodedText(explanation.cause),
      key: explanation.causeKey?.path, next: explanation.next?.rawValue,
      obstacles: explanation.obstacles.map(Obstacle.init), moves: explanation.moves.map(Move.init),
      isShadow: explanation.isShadow,
      earlyWake: explanation.earlyWake.map { EarlyWakeReport($0, at: now) })
    trim = explanation.trim.map { TrimReport($0) }
    lastShed = explanation.lastShed.map { ShedReport($0) }
    fruitlessWarnings = explanation.fruitless.map {
      CodedText("gave_nothing_back", $0.sentence(at: now))
    }
    leak = explanation.leak.map { LeakReport($0) }
    protection = explanation.protection.map {
      CodedText($0, for: explanation.protectionLeft)
    }
    protectedSeconds = explanation.protectionLeft?.seconds
  }
}

extension ExplanationReport.Obstacle {
  init(_ obstacle: Lifecycle.Obstacle) {
    self.init(
      code: obstacle.code, text: obstacle.sentence, key: obstacle.key?.path,
      clearsInSeconds: obstacle.clearsIn?.seconds, measured: obstacle.measured?.bytes,
      limit: obstacle.limit?.bytes)
  }
}

extension ExplanationReport.Move {
  init(_ move: Lifecycle.Move) {
    self.init(
      to: move.to.rawValue, code: move.code, text: move.sentence, afterSeconds: move.after?.seconds,
      key: move.key?.path)
  }
}

extension RankingReport {
  init(_ ranking: Ranking) {
    self.init(
      pressure: ranking.level.name, terminationOrder: ranking.terminationOrder.map(\.rawValue),
      termination: ranking.termination.map(Entry.init),
      hibernationOrder: ranking.hibernationOrder.map(\.rawValue),
      hibernation: ranking.hibernation.map(Entry.init))
  }
}

extension RankingReport.Entry {
  init(_ entry: Ranking.Entry) {
    self.init(
      worker: entry.worker.name, state: entry.state.rawValue, band: entry.band.total,
      bandOfState: entry.band.base, bandOfImportance: entry.band.importance,
      bandBonus: entry.band.bonus, isDemoted: entry.band.isDemoted,
      footprint: entry.footprint.bytes, secondsSinceUse: entry.sinceUse.seconds,
      launchSeconds: entry.launchCost?.seconds, regret: RankingReport.Regret(entry.regret),
      before: entry.before.map { CodedText($0) }, fromPressure: entry.level?.name,
      changesInSeconds: entry.changesIn?.seconds,
      obstacles: entry.obstacles.map(ExplanationReport.Obstacle.init))
  }
}

extension RankingReport.Regret {
  init(_ terms: RegretTerms) {
    self.init(
      millisecondsPerMegabyte: terms.value, chance: terms.chance,
      meanIntervalSeconds: terms.meanInterval?.seconds, costSeconds: terms.cost.seconds,
      isCostKnown: terms.isCostMeasured)
  }
}
