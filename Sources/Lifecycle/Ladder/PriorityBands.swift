import Policy

// The order of termination: bands from 0 to 100, the lowest first. Importance raises a worker below
// a foreground worker, but never into the next state's band. So an important background worker
// (30–59) stays under a hibernated one (75–99), which costs nearly nothing to keep.

/// The terms whose sum is a worker's band.
public struct BandTerms: Hashable, Sendable {
  /// The band of the state.
  public var base: Int
  public var importance: Int
  /// The bonus for early wakes: the worker was put to sleep too early.
  public var bonus: Int
  /// Whether it counts as suspended, because it has been hibernated for long enough
  /// (`hibernate.demote_after`).
  public var isDemoted = false
  public var total: Int { base + importance + bonus }
}

extension WorkerState {
  /// The band of an unimportant worker. Transitions have no band of their own.
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

  /// What an importance of 100 adds.
  var bandRoom: Int {
    switch self {
    case .suspended, .background: 29
    case .hibernated: 24
    default: 0
    }
  }
}

extension WorkerRecord {
  /// The worker's band. Between two states the higher band counts.
  func band(at now: Instant) -> Int { bandTerms(at: now).total }

  func bandTerms(at now: Instant) -> BandTerms {
    let bonus = bonus(at: now)
    func terms(_ state: WorkerState) -> BandTerms { self.terms(in: state, bonus) }
    func higher(_ left: BandTerms, _ right: BandTerms) -> BandTerms {
      left.total < right.total ? right : left
    }
    switch state {
    case .suspending: return higher(terms(.background), terms(.suspended))
    case .hibernating: return higher(terms(.suspended), terms(.hibernated))
    case .resuming: return higher(terms(origin), terms(resumesTo))
    case .terminating: return terms(origin)
    case .hibernated where isDemoted(at: now):
      var demoted = terms(.suspended)
      demoted.isDemoted = true
      return demoted
    default: return terms(state)
    }
  }

  /// The next instant at which time alone changes the band.
  func bandChangesAt(_ now: Instant) -> Instant? {
    let halving = earlyWake.bonusChangesAt(now, policy.earlyWake)
    let demotion = demotedAt.flatMap { $0 > now ? $0 : nil }
    return [halving, demotion].compactMap { $0 }.min()
  }

  var resumesTo: WorkerState {
    goal?.destination == .foreground ? .foreground : .background
  }

  private func terms(in state: WorkerState, _ bonus: Int) -> BandTerms {
    let importance = min(max(profile.importance, 0), 100) * state.bandRoom / 100
    return BandTerms(
      base: state.baseBand, importance: importance,
      bonus: min(bonus, state.bandRoom - importance))
  }
}
