import Policy

/// Checks the relations between the keys of a policy. A check reports an error only if the current
/// text has set one of the keys: an error in a base policy is reported for the base.
struct PolicyChecks {
  var policy: LifecyclePolicy
  /// The readers of the current texts. There are several if several files have overrides.
  var readers: [MappingReader]
  /// True for the policy of one worker.
  var isOfWorker = false

  func run() {
    checkThresholds()
    checkReach()
    checkEnd()
    checkFootprints()
    checkDeadlines()
    checkProtection()
  }

  /// Reports a contradiction at the first of some keys that a current text has set.
  private func report(
    _ severity: Diagnostic.Severity = .error, at paths: String..., message: String,
    suggestion: String? = nil
  ) {
    for path in paths {
      for reader in readers {
        guard let position = reader.positions[path] else { continue }
        return reader.sink.report(severity, at: position, message, suggestion: suggestion)
      }
    }
  }

  /// Checks that a higher level needs less available memory.
  private func checkThresholds() {
    let levels: [PressureLevel] = [.warning, .urgent, .critical]
    for (index, upper) in levels.enumerated().dropFirst() {
      // The threshold is compared with the nearest lower level that has one in the same unit.
      guard let amount = policy.pressure[upper]?.availableBelow else { continue }
      for lower in levels[..<index].reversed() {
        guard let other = policy.pressure[lower]?.availableBelow,
          let ascending = amount.isAbove(other)
        else { continue }
        if ascending {
          report(
            at: "pressure.\(upper.name).available_below", "pressure.\(lower.name).available_below",
            message: "thresholds out of order: `\(upper.name)` begins at \(amount.policyText)"
              + " available, before `\(lower.name)` at \(other.policyText)",
            suggestion: "warning, urgent and critical need decreasing values")
        }
        break
      }
    }
  }

  /// Checks that a higher level can do at least as much as the one below.
  private func checkReach() {
    let levels: [PressureLevel] = [.warning, .urgent, .critical]
    for (lower, upper) in zip(levels, levels.dropFirst()) {
      let (below, above) = (policy.ladder[lower].reach, policy.ladder[upper].reach)
      // If `critical` has no `terminate`, `checkEnd()` reports that more clearly.
      guard let below, above.map({ $0 < below }) ?? (upper != .critical) else { continue }
      report(
        at: "ladder.\(upper.name)", "ladder.\(lower.name)",
        message: "`\(upper.name)` does less than `\(lower.name)`, which includes"
          + " `\(below.text)`",
        suggestion: "end `\(upper.name)` with `\(below.text)`")
    }
  }

  /// Checks that the ladder has an end: it can free all memory of the workers.
  private func checkEnd() {
    if policy.pressure.critical == nil {
      report(
        at: "pressure.critical",
        message: "`critical` can't be `never`: its rungs would never be taken",
        suggestion: "give it the smallest threshold, such as `{ available_below: 5% }`")
    }
    switch policy.ladder.critical.reach {
    case nil:
      report(
        at: "ladder.critical",
        message: "`critical` has no `terminate`: the ladder may free too little memory",
        suggestion: "end it with `terminate background, terminate foreground`")
    case .terminate(.foreground):
      break
    case let last?:
      report(
        .warning, at: "ladder.critical",
        message: "`critical` ends with `\(last.text)`: a foreground worker alone can exhaust the"
          + " memory",
        suggestion: "end it with `terminate foreground`")
    }
  }

  private func checkFootprints() {
    guard let largest = policy.hibernate.maxFootprint, largest < policy.hibernate.minFootprint
    else { return }
    report(
      at: "hibernate.max_footprint", "hibernate.min_footprint",
      message: "`max_footprint` (\(largest.policyText)) is under `min_footprint`"
        + " (\(policy.hibernate.minFootprint.policyText)): nothing would ever be hibernated",
      suggestion: "to turn hibernation off, write `enabled: false`")
  }

  private func checkDeadlines() {
    guard let after = policy.background.suspendAfter, policy.background.shedDeadline > after
    else { return }
    report(
      .warning, at: "background.shed_deadline", "background.suspend_after",
      message: "`shed_deadline` (\(policy.background.shedDeadline.policyText)) is longer than"
        + " `suspend_after` (\(after.policyText)): a worker may be suspended before it has answered"
    )
  }

  /// Warns of a policy that protects all workers, because the ladder has no end then.
  private func checkProtection() {
    if isOfWorker || policy.terminate.forMemory { return }
    report(
      .warning, at: "terminate.for_memory",
      message: "`terminate: never` protects all workers: the ladder may free too little memory",
      suggestion: "write it in the `policy` of the workers that need it")
  }
}

extension PressureCondition.Amount {
  /// Returns `nil` for a share and a size, which can't be compared without a machine.
  fileprivate func isAbove(_ other: PressureCondition.Amount) -> Bool? {
    switch (self, other) {
    case (.percent(let amount), .percent(let theirs)): amount > theirs
    case (.bytes(let amount), .bytes(let theirs)): amount > theirs
    default: nil
    }
  }
}

extension [Ladder.Rung] {
  /// The `terminate` rung that can terminate the most.
  fileprivate var reach: Ladder.Rung? {
    filter { ($0.loss ?? 0) > 0 }.max { ($0.loss ?? 0) < ($1.loss ?? 0) }
  }
}

extension Ladder.Rung {
  fileprivate static func < (left: Ladder.Rung, right: Ladder.Rung) -> Bool {
    (left.loss ?? 0) < (right.loss ?? 0)
  }
}
