import Lifecycle
import Policy

/// Checks the guarantees of `terminate: ask`, independently of the engine's rules.
struct NoticeCheck: Sendable {
  private struct GivenNotice: Sendable {
    var notice: TerminationNotice
    var available: ByteCount
  }
  private var given: [WorkerID: GivenNotice] = [:]

  /// Checks a directive. Returns a complaint, or `nil`.
  mutating func check(
    _ directive: Directive, _ profiles: [WorkerID: WorkerProfile], after: Engine,
    level: PressureLevel, at now: Instant
  ) -> String? {
    switch directive {
    case .willTerminate(let worker, let notice):
      given[worker] = GivenNotice(notice: notice, available: after.available)
      if level == .normal { return "\(worker) got a notice without pressure" }
      return notice.until - now == profiles[worker]?.policy.terminate.ask
        ? nil : "\(worker) got a notice of another time"
    case .willNotTerminate(let worker, let reason):
      if given.removeValue(forKey: worker) == nil { return "\(worker) had no notice" }
      return reason.isEmpty ? "a notice was withdrawn without a reason" : nil
    case .transition(let transition):
      return check(transition, profiles[transition.worker], after: after, at: now)
    default: return nil
    }
  }

  private mutating func check(
    _ transition: Transition, _ profile: WorkerProfile?, after: Engine, at now: Instant
  ) -> String? {
    let worker = transition.worker
    guard transition.to == .terminating || transition.to == .terminated else { return nil }
    let past = given.removeValue(forKey: worker)
    guard transition.to == .terminating, case .pressure(let cause) = transition.cause,
      profile?.policy.terminate.ask != nil
    else { return nil }
    guard let past else { return "\(worker) was terminated without a notice" }
    let isWorse =
      cause > past.notice.level || after.available.bytes * 2 <= past.available.bytes
    return now >= past.notice.until || isWorse
      ? nil : "\(worker) was terminated before its notice was over"
  }
}
