import Policy

/// The progress of the ladder. At most one step is under way.
struct LadderState: Codable, Sendable, Equatable {
  var step: Step?
  /// Until then the freed memory may not show in a reading.
  var settleUntil: Instant?
  /// What hibernations have freed since the last reading. `nil`: the last step was no hibernation,
  /// or it failed.
  var freed: ByteCount?
  var burst: JetsamBurst?
  /// What shadow mode would have freed in this episode.
  var shadowFreed = ByteCount.zero
  /// When protected workers were last reported as the only ones left. `nil`: never, or in a journal
  /// of an earlier version.
  var protectedReportedAt: PressureEpisode?
  /// The state before the last termination, until it is known whether it helped.
  var before: BeforeTermination?
  /// The time during which no worker is terminated, because that wouldn't help.
  var pause: TerminationPause?
  /// When each `VainTermination.Reason` was last reported. `nil`: never.
  var vainReportedAt: [String: PressureEpisode]?
  /// The workers with a notice (`terminate: ask`). `nil`: none.
  var noticed: [WorkerID]?

  /// The step that the ladder waits for, and until when it waits.
  enum Step: Codable, Sendable, Equatable {
    case hibernating(WorkerID, until: Instant)
    case terminating(WorkerID, until: Instant)
    case purging(WorkerID, until: Instant)
    case trimming(WorkerID, until: Instant)
    case warning(until: Instant)

    var until: Instant {
      switch self {
      case .hibernating(_, let until), .terminating(_, let until), .purging(_, let until),
        .trimming(_, let until), .warning(let until):
        until
      }
    }
  }

  enum Outcome: Sendable { case acted, waiting, nothingLeft }

  /// The longest time that a hibernation, or any short transition, delays the ladder.
  static let timeout = Duration.seconds(10)
  /// The longest wait for a new reading after the settling time.
  static let readingTimeout = Duration.seconds(1)
}

extension Engine {
  /// The level that is true now, as far as hysteresis allows. If the ladder acted on the level
  /// alone, it would terminate workers for `clear_after` after memory is free again.
  var actingLevel: PressureLevel { min(gauge.level, gauge.holding) }

  mutating func climbLadder() {
    reviewStep()
    reviewNotices()
    reviewTermination()
    guard ladderState.step == nil else { return }
    closeBurst(nothingLeft: false)
    var nothingLeft = false
    if actingLevel >= .warning {
      switch hasSettled ? performStep(actingLevel) : hibernateFurther(actingLevel) {
      case .acted:
        decisions += 1
        return
      case .waiting: break
      case .nothingLeft:
        nothingLeft = actingLevel == gauge.level
        if nothingLeft { reportProtected(at: actingLevel) }
      }
    }
    closeBurst(nothingLeft: nothingLeft)
  }

  /// Checks whether the step is over, by success or by failure.
  private mutating func reviewStep() {
    guard let step = ladderState.step else { return }
    reviewHibernationInsteadOfEnd(step)
    let isOver =
      switch step {
      case .hibernating(let worker, _): !isBeingHibernated(worker)
      case .terminating(let worker, _): (state(of: worker) ?? .terminated) != .terminating
      case .purging(let worker, _):
        !(index(of: worker).map { workers[$0].run.isPurging } ?? false)
      case .trimming(let worker, _):
        !(index(of: worker).map { workers[$0].isTrimmedSoon } ?? false)
      case .warning:
        !workers.contains(.shedding) { $0.warnedIn?.episode == gauge.episode }
      }
    guard isOver || now >= step.until else { return }
    ladderState.step = nil
    countFreed(by: step)
    guard isOver else { return ladderState.before = nil }
    // A trim that failed freed nothing that a reading could show.
    if case .trimming(let worker, _) = step, let index = index(of: worker),
      workers[index].run.trim?.failure != nil
    {
      return
    }
    ladderState.settleUntil = now + policy.terminate.settle
    if case .terminating(let worker, _) = step {
      ladderState.burst?.victims[worker]?.isGone = true
    }
  }

  /// Whether the settling time after the last step has passed, and on a host there was a reading
  /// since then.
  var hasSettled: Bool {
    guard let settleUntil = ladderState.settleUntil else { return true }
    guard now >= settleUntil else { return false }
    return policy.memory != .host || memory.heardAt >= settleUntil
      || now >= settleUntil + LadderState.readingTimeout
  }

  func considerClimb(_ next: inout EarliestDeadline) {
    next.consider(ladderState.step?.until)
    next.consider(ladderState.settleUntil)
    considerNotices(&next)
    next.consider(ladderState.pause?.until)
    next.consider(ladderState.settleUntil.map { $0 + LadderState.readingTimeout })
  }
}
