import Lifecycle
import Policy

/// Checks the consequences of `limits.footprint`, and suspicions of leaks, independently of the
/// engine's rules.
struct FootprintLimitCheck {
  var profiles: [WorkerID: WorkerProfile]

  /// Returns a complaint if a report of an excess is wrong.
  func check(_ excess: FootprintExcess, of worker: WorkerID) -> String? {
    guard let limits = profiles[worker]?.footprintLimits, let limit = limits[excess.step] else {
      return "\(worker) has no \(excess.step.path)"
    }
    if excess.limit != limit { return "\(worker) has another limit: \(excess.sentence)" }
    if excess.footprint <= limit { return "\(worker) isn't over its limit: \(excess.sentence)" }
    if excess.lasted < limits.sustainedFor {
      return "\(worker) wasn't over its limit long enough: \(excess.sentence)"
    }
    return nil
  }

  /// Returns a complaint if a leak is suspected without evidence. The bounds are half of the
  /// engine's, because the newest footprint may be below the highest one by half of the growth.
  func check(_ leak: LeakSuspicion, of worker: WorkerID) -> String? {
    let growth = leak.footprint - leak.before
    let isFounded =
      leak.suspensions >= LeakSuspicion.minSuspensions && growth >= .megabytes(2)
      && growth.bytes * 20 >= leak.footprint.bytes
    return isFounded ? nil : "\(worker) has no evidence of a leak: \(leak.sentence)"
  }

  /// Returns a complaint if a transition that a footprint caused is wrong.
  func check(_ transition: Transition) -> String? {
    guard case .footprint(let excess) = transition.cause else { return nil }
    let worker = transition.worker
    switch (transition.from, transition.to) {
    case (.foreground, .terminating), (.background, .terminating):
      if excess.step != .restart || profiles[worker]?.mayBeTerminated == false {
        return "\(worker) may not be restarted for its footprint"
      }
      let minDuration =
        FootprintLimits.longestWait + (profiles[worker]?.footprintLimits?.sustainedFor ?? .zero)
      if transition.from == .foreground, excess.lasted < minDuration {
        return "\(worker) was restarted in the foreground: \(excess.sentence)"
      }
    case (.background, .suspending), (.suspending, .suspended), (.suspended, .hibernating),
      (.hibernating, .hibernated):
      if excess.step != .hibernate { return "\(worker) was put to sleep for \(excess.sentence)" }
    case (_, .terminated): break
    default: return "\(transition) isn't a consequence of a footprint"
    }
    // An outcome has the cause of its beginning, and the limits may have changed since then.
    let isOutcome = [.suspended, .hibernated, .terminated].contains(transition.to)
    return isOutcome ? nil : check(excess, of: worker)
  }
}
