import Policy

/// Where the engine stands on the ladder: at most one step is under way.
struct LadderState: Codable, Sendable, Equatable {
  var step: Step?
  /// The freed memory must have had time to show.
  var settleUntil: Instant?
  var burst: JetsamBurst?
  /// What shadow mode would have freed in this episode.
  var shadowFreed = ByteCount.zero

  /// Each with the time after which it is waited for no longer.
  enum Step: Codable, Sendable, Equatable {
    case hibernating(WorkerID, until: Instant)
    case terminating(WorkerID, until: Instant)
    case purging(WorkerID, until: Instant)
    case warning(until: Instant)

    var until: Instant {
      switch self {
      case .hibernating(_, let until), .terminating(_, let until), .purging(_, let until),
        .warning(let until):
        until
      }
    }
  }

  enum Outcome: Sendable { case acted, waiting, nothingLeft }

  /// Longest that a hibernation, or any short transition, holds up the ladder.
  static let patience = Duration.seconds(10)
  /// Longest that a new reading is waited for once the memory has settled.
  static let patienceForReading = Duration.seconds(1)
}

extension Engine {
  /// What holds now, as far as hysteresis has let it through. Acting on the level alone would go
  /// on terminating for `clear_after` when there is memory again.
  var actingLevel: PressureLevel { min(gauge.level, gauge.holding) }

  mutating func climbLadder() {
    reviewStep()
    guard ladderState.step == nil else { return }
    closeBurst(nothingLeft: false)
    var nothingLeft = false
    if actingLevel >= .warning, hasSettled {
      switch takeStep(actingLevel) {
      case .acted:
        decisions += 1
        return
      case .waiting: break
      case .nothingLeft: nothingLeft = actingLevel == gauge.level
      }
    }
    closeBurst(nothingLeft: nothingLeft)
  }

  /// Is the step over, by success or by failure?
  private mutating func reviewStep() {
    guard let step = ladderState.step else { return }
    let isOver =
      switch step {
      case .hibernating(let worker, _): (state(of: worker) ?? .terminated) != .hibernating
      case .terminating(let worker, _): (state(of: worker) ?? .terminated) != .terminating
      case .purging(let worker, _):
        !(index(of: worker).map { workers[$0].run.isPurging } ?? false)
      case .warning:
        !workers.contains(.shedding) { $0.warnedIn?.episode == gauge.episode }
      }
    guard isOver || now >= step.until else { return }
    ladderState.step = nil
    guard isOver else { return }
    ladderState.settleUntil = now + policy.terminate.settle
    if case .terminating(let worker, _) = step { ladderState.burst?.markGone(worker) }
  }

  /// After a step: the memory has had its time, and on a host we have heard of it since.
  var hasSettled: Bool {
    guard let settleUntil = ladderState.settleUntil else { return true }
    guard now >= settleUntil else { return false }
    return policy.memory != .host || memory.heardAt >= settleUntil
      || now >= settleUntil + LadderState.patienceForReading
  }

  func considerClimb(_ next: inout EarliestDeadline) {
    next.consider(ladderState.step?.until)
    next.consider(ladderState.settleUntil)
    next.consider(ladderState.settleUntil.map { $0 + LadderState.patienceForReading })
    guard actingLevel >= .warning else { return }
    workers.forEach(.inTransit) { next.consider($0.since + LadderState.patience) }
  }
}

extension WorkerRecord {
  var isInTransit: Bool {
    state == .suspending || state == .hibernating || state == .resuming
  }
}
