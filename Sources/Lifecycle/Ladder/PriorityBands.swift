import Policy

// The order of termination: 0–100, the lowest first. Importance raises a worker below a foreground
// worker, but never into the next state's band. So an important background worker (30–59) stays under a
// hibernated one (75–99), which costs nearly nothing to keep.

/// What the place of a worker in the order is the sum of.
public struct BandTerms: Hashable, Sendable {
  /// The band of the state.
  public var base: Int
  public var importance: Int
  /// Added because the worker was put to sleep too early.
  public var bonus: Int
  /// Hibernated, and asleep for long enough to count as suspended (`hibernate.demote_after`).
  public var isDemoted = false
  public var total: Int { base + importance + bonus }
}

extension WorkerState {
  /// The band of an unimportant worker. The transitions have none of their own.
  var baseBand: Int {
    switch self {
    case .suspended: 0
    case .background: 30
    case .hibernated: 75
    case .launching: 90
    case .foreground: 100
    case .suspending, .hibernating, .resuming, .terminating, .terminated: 0
    }
  }

  /// What importance 100 adds.
  var bandRoom: Int {
    switch self {
    case .suspended, .background: 29
    case .hibernated: 24
    default: 0
    }
  }
}

extension WorkerRecord {
  /// A worker between two states counts as in the higher of them.
  func band(at now: Instant) -> Int { bandParts(at: now).total }

  func bandParts(at now: Instant) -> BandTerms {
    let bonus = bonus(at: now)
    func parts(_ state: WorkerState) -> BandTerms { self.parts(in: state, bonus) }
    func higher(_ left: BandTerms, _ right: BandTerms) -> BandTerms {
      left.total < right.total ? right : left
    }
    switch state {
    case .suspending: return higher(parts(.background), parts(.suspended))
    case .hibernating: return higher(parts(.suspended), parts(.hibernated))
    case .resuming: return higher(parts(origin), parts(resumesTo))
    case .terminating: return parts(origin)
    case .hibernated where isDemoted(at: now):
      var demoted = parts(.suspended)
      demoted.isDemoted = true
      return demoted
    default: return parts(state)
    }
  }

  /// The next instant at which time alone changes the band.
  func bandChangesAt(_ now: Instant) -> Instant? {
    let halving = earlyWake.bonusChangesAt(now, policy.earlyWake)
    let demotion = demotedAt.flatMap { $0 > now ? $0 : nil }
    return [halving, demotion].compactMap { $0 }.min()
  }

  private var resumesTo: WorkerState {
    goal?.destination == .foreground ? .foreground : .background
  }

  private func parts(in state: WorkerState, _ bonus: Int) -> BandTerms {
    let importance = min(max(profile.importance, 0), 100) * state.bandRoom / 100
    return BandTerms(
      base: state.baseBand, importance: importance,
      bonus: min(bonus, state.bandRoom - importance))
  }
}
