import Policy

// A worker's state is worth more than a termination that doesn't help. So no worker is terminated
// when all victims together hold too little of what is missing, and none after a termination
// without effect.

/// Why no worker is terminated although memory is short.
public struct VainTermination: Codable, Hashable, Sendable {
  /// Why a termination wouldn't help.
  public enum Reason: String, Codable, Hashable, Sendable, CaseIterable {
    /// The victims hold less than half of what is missing.
    case tooLittle
    /// The last termination, or hibernation instead of one, had no effect.
    case noEffect
  }
  public var reason: Reason
  public var level: PressureLevel
  /// What must become available before the level ends. Zero: only stalls cause the level.
  public var missing: ByteCount
  /// The memory in RAM of the workers that the level's rungs could terminate.
  public var held: ByteCount

  /// The report as a sentence.
  public var sentence: String {
    switch reason {
    case .tooLittle:
      "no worker is terminated at pressure \(level.name): \(missing) more must become available, "
        + "and the workers that could be terminated hold \(held)"
    case .noEffect:
      "no further worker is terminated at pressure \(level.name) for now: the last termination, "
        + "or hibernation instead of one, had no effect on it"
    }
  }
}

/// Until when no worker is terminated at this level and at lower ones.
struct TerminationPause: Codable, Sendable, Equatable {
  var level: PressureLevel
  var until: Instant

  /// The pause after a termination without effect.
  static let afterNoEffect = Duration.seconds(60)
  /// The least time between two comparisons of what workers hold with what is missing.
  static let betweenComparisons = Duration.seconds(5)
}

/// The memory before a worker was terminated.
struct BeforeTermination: Codable, Sendable, Equatable {
  var level: PressureLevel
  var available: ByteCount
  /// The part of its footprint that was in RAM.
  var footprint: ByteCount
  /// Whether only stalls caused the level.
  var onlyStalls: Bool
  /// The worker that was hibernated instead. `nil`: none, or an earlier version has written the
  /// journal.
  var hibernated: WorkerID?
}

extension Engine {
  /// What must become available before the level ends. Zero: available memory doesn't cause the
  /// level.
  func missing(at level: PressureLevel) -> ByteCount {
    guard let limit = policy.pressure[level]?.availableBelow else { return .zero }
    return max(.zero, limit.bytes(of: budget) - usable(at: level))
  }

  /// Whether a termination at this level can help. If the operator has set the level, there is
  /// nothing to compare.
  mutating func canHelp(at level: PressureLevel) -> Bool {
    if isSet(level) { return true }
    if let pause = ladderState.pause, pause.level >= level, now < pause.until { return false }
    let missing = missing(at: level)
    guard missing > .zero else { return true }
    var held = ByteCount.zero
    for rung in policy.ladder.steps(at: level) {
      guard case .terminate(let victims) = rung else { continue }
      for index in workers.indices(victims.openGroup) { held += workers[index].resident }
      if held + held >= missing { return true }
    }
    // Without any victim there is nothing to spare, and nothing to report.
    guard held > .zero else { return true }
    ladderState.pause = TerminationPause(
      level: level, until: now + TerminationPause.betweenComparisons)
    report(VainTermination(reason: .tooLittle, level: level, missing: missing, held: held))
    return false
  }

  func beforeTermination(of index: Int, at level: PressureLevel) -> BeforeTermination {
    BeforeTermination(
      level: level, available: usable(at: level), footprint: workers[index].resident,
      onlyStalls: missing(at: level) == .zero)
  }

  /// Decides whether the last termination has helped, once its memory shows in a reading.
  mutating func reviewTermination() {
    if let pause = ladderState.pause, actingLevel < pause.level || now >= pause.until {
      ladderState.pause = nil
    }
    guard let before = ladderState.before, ladderState.step == nil, hasSettled else { return }
    ladderState.before = nil
    // A hibernation that failed, or that a wake has undone, says nothing about the next
    // termination.
    if let worker = before.hibernated, state(of: worker) != .hibernated { return }
    guard actingLevel >= before.level, !hasHelped(before) else { return }
    // At a level that the operator has set, one worker after the other is terminated, to try the
    // policy.
    if let set = setPressure, set.level >= before.level { return }
    ladderState.pause = TerminationPause(
      level: before.level, until: now + TerminationPause.afterNoEffect)
    report(
      VainTermination(
        reason: .noEffect, level: before.level, missing: missing(at: before.level), held: .zero))
  }

  /// Whether enough memory is available now. The program that uses up the memory may continue
  /// meanwhile, so an eighth of the footprint is enough.
  private func hasHelped(_ before: BeforeTermination) -> Bool {
    if before.onlyStalls { return false }
    let minGain = max(Self.minYield, ByteCount(before.footprint.bytes / 8))
    return usable(at: before.level) >= before.available + minGain
  }

  /// Reports the reason once for each level of an episode.
  private mutating func report(_ vain: VainTermination) {
    let occasion = PressureEpisode(episode: gauge.episode, level: vain.level)
    guard ladderState.vainReportedAt?[vain.reason.rawValue] != occasion else { return }
    ladderState.vainReportedAt = (ladderState.vainReportedAt ?? [:])
      .merging([vain.reason.rawValue: occasion]) { $1 }
    emit(.terminatesNone(vain))
  }
}
