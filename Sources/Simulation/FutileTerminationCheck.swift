import Lifecycle
import Policy

/// Checks that no worker is terminated for lack of memory in vain. The check uses readings,
/// footprints and times only, not the engine's rules.
struct FutileTerminationCheck: Sendable {
  private var policy: LifecyclePolicy?
  /// When the pressure rose above normal.
  private var pressedSince: Instant?
  private var rulesSince = Instant.zero
  private var last: Victim?

  private struct Victim: Sendable {
    var worker: WorkerID
    var level: PressureLevel
    var at: Instant
    var available: ByteCount
    /// True if the worker has ended in time, and nothing has improved since its termination.
    var hasEnded = false
  }

  /// Records each event, before its directives are checked.
  mutating func record(_ event: Event, _ after: Engine, at now: Instant) {
    // After a change of the rules, or when the operator sets a pressure level, no termination is in
    // vain.
    if after.policy != policy || after.setPressure != nil { last = nil }
    if after.policy != policy { rulesSince = now }
    policy = after.policy
    guard let victim = last else { return }
    if case .exited(victim.worker, _) = event, now < victim.at + .seconds(4) {
      last?.hasEnded = true
    }
    let isBetter =
      Self.usable(after, at: victim.level) >= victim.available + .megabytes(1)
      || Self.missing(after, at: victim.level) == .zero
    if isBetter || now >= victim.at + .seconds(60) { last = nil }
  }

  mutating func record(pressure level: PressureLevel, at now: Instant) {
    pressedSince = level == .normal ? nil : pressedSince ?? now
  }

  /// Checks a transition. Returns a complaint, or `nil`.
  ///
  /// - Parameter level: the level for which the worker is terminated.
  mutating func check(
    _ transition: Transition, at level: PressureLevel, _ after: Engine, at now: Instant
  ) -> String? {
    guard after.setPressure == nil else { return nil }
    let missing = Self.missing(after, at: level)
    defer {
      last =
        missing > .zero && transition.from != .hibernated
        ? Victim(
          worker: transition.worker, level: level, at: now,
          available: Self.usable(after, at: level)) : nil
    }
    let name = "\(transition.worker)"
    if let last, last.hasEnded, last.level >= level {
      return "\(name) was terminated although the end of \(last.worker) had no effect"
    }
    let share = PressureCondition.Amount.percent(after.policy.pressure.stallsCountBelow)
    let isLow = after.available < share.bytes(of: after.budget) || share == .percent(100)
    if missing == .zero, after.policy.memory != .host || !isLow {
      return "\(name) was terminated with \(after.available) available"
    }
    // The level rises when its condition has been true for `sustained_for`.
    let rules = after.policy.pressure
    let minDuration = max(.zero, rules.terminateAfter - rules.sustainedFor)
    // Under the previous rules, the shortage had lasted longer when the level rose.
    let areRulesRecent = now < rulesSince + .seconds(5)
    guard let pressedSince, now >= pressedSince + minDuration || areRulesRecent else {
      return "\(name) was terminated for a shortage that hadn't lasted \(minDuration.text)"
    }
    let held = after.snapshots().reduce(ByteCount.zero) {
      $1.state.isAlive ? $0 + after.resident(of: $1.worker) : $0
    }
    return transition.from == .hibernated || held + held >= missing
      ? nil : "\(name) was terminated for \(missing), and all workers hold \(held)"
  }

  private static func usable(_ engine: Engine, at level: PressureLevel) -> ByteCount {
    guard engine.policy.memory == .host, level > .warning, let reading = engine.memoryReading
    else { return engine.available }
    let swap = Double(reading.swapFree.bytes) * engine.policy.pressure.swapShare
    return engine.available + ByteCount(Int64(swap))
  }

  private static func missing(_ engine: Engine, at level: PressureLevel) -> ByteCount {
    guard let limit = engine.policy.pressure[level]?.availableBelow else { return .zero }
    return max(.zero, limit.bytes(of: engine.budget) - usable(engine, at: level))
  }
}
