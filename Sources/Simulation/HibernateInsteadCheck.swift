import Lifecycle
import Policy

/// Checks that no running worker is terminated for lack of memory while it could be suspended and
/// hibernated. The check uses events, profiles and numbers only, not the engine's rules.
struct HibernateInsteadCheck: Sendable {
  /// The workers for which there is an excuse to terminate them, by excuse.
  private var excused: [Excuse: Set<WorkerID>] = [:]
  private var requests: [Request.ID: WorkerID] = [:]

  private enum Excuse: Hashable, CaseIterable {
    /// The worker asks not to be suspended.
    case holds
    /// The worker is asked to free memory, and hasn't finished.
    case sheds
    /// An attempt to hibernate it has failed in this run.
    case failed
    /// An attempt was made in this episode of pressure.
    case tried
  }

  mutating func record(_ event: Event) {
    switch event {
    case .hold(let worker, let holds): set(.holds, of: worker, holds)
    case .shedFinished(let worker, _, _): set(.sheds, of: worker, false)
    case .suspendFailed(let worker, _), .staysAwake(let worker, _),
      .hibernateFailed(let worker, _, _), .found(let worker, _):
      set(.failed, of: worker, true)
    case .request(let request): requests[request.id] = request.worker
    case .launched(let worker), .exited(let worker, _), .released(let worker),
      .adopted(let worker, _, _):
      for excuse in Excuse.allCases { set(excuse, of: worker, false) }
    default: break
    }
  }

  private mutating func set(_ excuse: Excuse, of worker: WorkerID, _ holds: Bool) {
    if holds {
      excused[excuse, default: []].insert(worker)
    } else {
      excused[excuse]?.remove(worker)
    }
  }

  /// Checks a directive. Returns a complaint, or `nil`.
  mutating func check(_ directive: Directive, _ after: Engine) -> String? {
    switch directive {
    case .answer(let request, _): requests[request] = nil
    case .shed(let worker, _, _): set(.sheds, of: worker, true)
    case .checkSafePoint(let worker): set(.tried, of: worker, true)
    case .pressureChanged(_, to: .normal, _): excused[.tried] = nil
    case .transition(let transition):
      guard case .pressure(let level) = transition.cause else { return nil }
      if transition.to == .background || transition.to == .suspending {
        set(.tried, of: transition.worker, true)
      }
      return transition.to == .terminating ? check(transition, at: level, after) : nil
    default: break
    }
    return nil
  }

  private func check(
    _ transition: Transition, at level: PressureLevel, _ after: Engine
  ) -> String? {
    let worker = transition.worker
    guard transition.from == .foreground || transition.from == .background,
      after.policy.ladder.steps(at: level).contains(.hibernate),
      let snapshot = after.snapshot(of: worker), !snapshot.isShadow,
      snapshot.profile.policy.hibernate.enabled,
      snapshot.profile.policy.background.suspendAfter != nil, snapshot.tasks.isEmpty,
      !requests.values.contains(worker),
      Excuse.allCases.allSatisfy({ excused[$0]?.contains(worker) != true })
    else { return nil }
    let movable = snapshot.footprint - snapshot.purgeable
    guard movable >= .megabytes(1), movable <= Self.room(after) else { return nil }
    return "\(worker) was terminated in the \(transition.from) although it could be hibernated"
  }

  /// The size of the largest image for which the disk has room.
  private static func room(_ engine: Engine) -> ByteCount {
    guard let (reading, minFree) = engine.imageDisk else { return ByteCount(.max) }
    let rules = engine.policy.hibernate.disk
    return min(
      rules.budget - reading.images, rules.dailyWrites - reading.writtenToday,
      reading.free - minFree)
  }
}
