import Policy

// Why a worker isn't hibernated, with the numbers, and what would have to change.

extension Engine {
  func hibernationVerdict(of worker: WorkerRecord, at now: Instant) -> Verdict? {
    switch worker.state {
    case .terminated, .terminating, .hibernating, .hibernated: nil
    case .launching, .foreground, .resuming:
      Verdict(
        code: "not_suspended",
        sentence: "only suspended workers are hibernated, and it is \(worker.state.text)")
    case .background:
      Verdict(
        code: "not_suspended",
        sentence: "not suspended yet: \(suspensionVerdict(of: worker, at: now))")
    case .suspending: Verdict(code: "being_suspended", sentence: "being suspended now")
    case .suspended: suspendedVerdict(of: worker, at: now)
    }
  }

  private func suspensionVerdict(of worker: WorkerRecord, at now: Instant) -> String {
    if let obstacle = worker.suspensionObstacle(at: now) { return obstacle.sentence }
    return isShadow(worker) ? "shadow mode" : "being checked for file locks"
  }

  private func suspendedVerdict(of worker: WorkerRecord, at now: Instant) -> Verdict? {
    if let obstacle = obstacle(worker, to: .automatic, at: now) {
      let isTooEarly = if case .tooEarly = obstacle { true } else { false }
      let described = obstacle.described
      return Verdict(
        code: described.code, sentence: (isTooEarly ? "not yet: " : "") + described.sentence)
    }
    guard isShadow(worker) else { return nil }
    return Verdict(
      code: "shadow_mode", sentence: "shadow mode: it would have been hibernated")
  }
}

/// An obstacle as a code for programs and a sentence for people.
public struct Verdict: Hashable, Sendable {
  public var code: String
  public var sentence: String
}
