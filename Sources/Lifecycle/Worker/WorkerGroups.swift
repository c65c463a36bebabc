import Policy

/// Groups of workers that the ladder and the foreground need. `WorkerTable` keeps them as sets, so
/// that an event costs nothing for the workers that it doesn't concern.
struct WorkerGroups: OptionSet, Hashable, Sendable {
  let rawValue: UInt32

  static let foreground = WorkerGroups(rawValue: 1 << 0)
  static let inTransit = WorkerGroups(rawValue: 1 << 1)
  static let terminating = WorkerGroups(rawValue: 1 << 2)
  /// The worker runs, and a shed request to it is in flight or will be sent.
  static let shedding = WorkerGroups(rawValue: 1 << 3)
  /// The worker can be warned, and hasn't been warned in this episode of pressure or at this level.
  static let warnable = WorkerGroups(rawValue: 1 << 4)
  /// The worker could be hibernated under pressure, or its measurement is still awaited.
  static let hibernatable = WorkerGroups(rawValue: 1 << 5)
  /// Workers with memory to free, by rung of the ladder, whether or not shadow mode has reported
  /// them.
  static let suspendedVictims = WorkerGroups(rawValue: 1 << 6)
  static let backgroundVictims = WorkerGroups(rawValue: 1 << 7)
  static let foregroundVictims = WorkerGroups(rawValue: 1 << 8)
  /// The victims with something left to do or to report.
  static let openSuspended = WorkerGroups(rawValue: 1 << 9)
  static let openBackground = WorkerGroups(rawValue: 1 << 10)
  static let openForeground = WorkerGroups(rawValue: 1 << 11)
  /// The worker was warned in this episode, or shadow mode has reported its termination.
  static let noted = WorkerGroups(rawValue: 1 << 12)

  /// The worker offers memory that may be purged.
  static let offering = WorkerGroups(rawValue: 1 << 13)
  /// The worker is hibernated, and demoted (`hibernate.demote_after`).
  static let demoted = WorkerGroups(rawValue: 1 << 14)
  /// The worker would be hibernated by now, except for reasons outside the worker: the disk, or the
  /// resume costs of others.
  static let held = WorkerGroups(rawValue: 1 << 15)

  /// Workers with memory to free, by rung of the ladder, that are protected (`terminate: never`,
  /// `dormouse protect`).
  static let protectedSuspended = WorkerGroups(rawValue: 1 << 16)
  static let protectedBackground = WorkerGroups(rawValue: 1 << 17)
  static let protectedForeground = WorkerGroups(rawValue: 1 << 18)

  /// The worker runs, a trim would move enough memory, and the last one wasn't a moment ago.
  static let trimmable = WorkerGroups(rawValue: 1 << 19)

  static let count = 20

  /// The number of a single group.
  var number: Int { rawValue.trailingZeroBitCount }

  /// Removes and returns the lowest single group. `nil`: the set is empty.
  mutating func popFirst() -> WorkerGroups? {
    guard rawValue != 0 else { return nil }
    let first = WorkerGroups(rawValue: rawValue & ~(rawValue - 1))
    remove(first)
    return first
  }
}

/// What groups depend on beside the worker itself. They depend on the time only as far as the
/// worker has a deadline for it. Any other change has to mark all workers that it concerns.
struct WorkerView {
  var now: Instant
  var mode: LifecyclePolicy.Mode
  /// The value of `PressureGauge.episode`.
  var episode: Int
  /// The value of `Engine.actingLevel`.
  var level: PressureLevel
  var warnOncePer: PressureRules.WarningScope
}

extension WorkerGroups {
  /// The groups of a worker. A function and not an initializer: an initializer would copy the
  /// record.
  static func of(_ worker: WorkerRecord, _ view: WorkerView) -> WorkerGroups {
    var groups: WorkerGroups = []
    switch worker.state {
    // The leader of a led worker decides about its foreground.
    case .foreground: if worker.profile.leader == nil { groups.insert(.foreground) }
    case .suspending, .hibernating, .resuming: groups.insert(.inTransit)
    case .terminating: groups.insert(.terminating)
    default: break
    }
    let isNoted = worker.warnedIn?.episode == view.episode || worker.sparedIn == view.episode
    if isNoted { groups.insert(.noted) }
    if worker.state.runs, worker.isShedding { groups.insert(.shedding) }
    if worker.canBeWarned(view) { groups.insert(.warnable) }
    let isShadow = worker.isShadow(view)
    if worker.isHibernatable(view, isShadow) {
      groups.insert(.hibernatable)
      if worker.profile.leader == nil, worker.isHeld(view), worker.isWithinThrift(view, isShadow) {
        groups.insert(.held)
      }
    }
    if worker.offersMemory, !isShadow || !worker.notes.contains(.purge) { groups.insert(.offering) }
    if worker.isTrimmable(at: view.now), !isShadow || !worker.notes.contains(.trim) {
      groups.insert(.trimmable)
    }
    if worker.isDemoted(at: view.now), worker.goal == nil, worker.profile.leader == nil,
      worker.protection == nil
    {
      groups.insert(.demoted)
    }
    guard worker.resident >= Engine.minYield, worker.profile.mayBeTerminated,
      let victims = worker.rungOfState
    else { return groups }
    if worker.protection == nil {
      groups.insert(victims.group)
      if !isShadow || worker.sparedIn != view.episode { groups.insert(victims.openGroup) }
    } else if !isShadow {
      groups.insert(victims.protectedGroup)
    }
    return groups
  }
}

extension WorkerRecord {
  fileprivate func isShadow(_ view: WorkerView) -> Bool {
    (modeByRequest ?? (policy.mode == .shadow ? .shadow : view.mode)) == .shadow
  }

  fileprivate func canBeWarned(_ view: WorkerView) -> Bool {
    guard state == .foreground || state == .background, profile.canShed else { return false }
    guard let warned = warnedIn, warned.episode == view.episode else { return true }
    return view.warnOncePer != .episode && warned.level < view.level
  }

  /// Whether the worker itself allows a hibernation. The room on the disk and the cost of a resume
  /// are checked later, when a worker is to be hibernated.
  fileprivate func isHibernatable(_ view: WorkerView, _ isShadow: Bool) -> Bool {
    guard goal == nil, !isShadow || !notes.contains(.hibernation) else { return false }
    if state == .suspended { return isHibernatableSleeper(view) }
    return isShadow && imagined?.isHibernatableSleeper(view) == true
  }

  private func isHibernatableSleeper(_ view: WorkerView) -> Bool {
    guard policy.hibernate.enabled, run.hibernation.permanentRefusal == nil else { return false }
    guard run.isMeasuredAsleep || view.now >= measuredBy else { return true }
    let minFootprint = min(policy.hibernate.minFootprint, Engine.minYield)
    guard run.footprint != nil, movable >= minFootprint else { return false }
    return view.now >= run.hibernation.retryAt ?? .zero
  }

  /// Whether no economic limit prevents the hibernation (`min_footprint`, `max_footprint`,
  /// `cooldown`). The ladder ignores these limits when the alternative is a termination.
  fileprivate func isWithinThrift(_ view: WorkerView, _ isShadow: Bool) -> Bool {
    let worker = isShadow ? imagined ?? self : self
    guard worker.run.isMeasuredAsleep || view.now >= worker.measuredBy else { return true }
    let rules = worker.policy.hibernate
    return worker.movable >= rules.minFootprint
      && worker.movable <= rules.maxFootprint ?? ByteCount(.max)
      && view.now >= worker.cooldownOver ?? .zero
  }

  fileprivate func isHeld(_ view: WorkerView) -> Bool {
    if state == .suspended, let due = limitDueAt(.hibernate), view.now >= due { return true }
    let idle =
      shadow.depth == nil ? idleBeforeHibernation : (imagined ?? self).idleBeforeHibernation
    return idle.map { view.now >= $0.from + $0.after } ?? false
  }

  /// The rung that terminates workers in this state.
  fileprivate var rungOfState: Ladder.Rung.Victims? {
    switch state {
    case .suspended, .hibernated: return .suspended
    case .background: return .background
    case .foreground: return .foreground
    case .launching: return run.isSpawned ? .foreground : nil
    case .suspending, .hibernating, .resuming, .terminating, .terminated: return nil
    }
  }
}

extension Ladder.Rung.Victims {
  /// All workers that the rung could terminate.
  var group: WorkerGroups { groups.all }
  var openGroup: WorkerGroups { groups.open }
  var protectedGroup: WorkerGroups { groups.protected }

  private var groups: (all: WorkerGroups, open: WorkerGroups, protected: WorkerGroups) {
    switch self {
    case .suspended: (.suspendedVictims, .openSuspended, .protectedSuspended)
    case .background: (.backgroundVictims, .openBackground, .protectedBackground)
    case .foreground: (.foregroundVictims, .openForeground, .protectedForeground)
    }
  }
}
