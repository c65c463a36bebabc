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
    thresholds()
    reach()
    end()
    footprints()
    deadlines()
    protection()
  }

  /// Returns the position of the first of some keys that a current text has set.
  private func place(_ paths: String...) -> Place? {
    for path in paths {
      for reader in readers {
        if let position = reader.places[path] {
          return Place(sink: reader.sink, position: position)
        }
      }
    }
    return nil
  }

  private struct Place {
    var sink: DiagnosticSink
    var position: Position

    func error(_ message: String, suggestion: String? = nil) {
      sink.error(at: position, message, suggestion: suggestion)
    }
    func warning(_ message: String, suggestion: String? = nil) {
      sink.warning(at: position, message, suggestion: suggestion)
    }
  }

  /// Checks that a higher level needs less available memory.
  private func thresholds() {
    let levels: [PressureLevel] = [.warning, .urgent, .critical]
    for (index, upper) in levels.enumerated().dropFirst() {
      // The threshold is compared with the nearest lower level that has one in the same unit.
      guard let own = policy.pressure[upper]?.availableBelow else { continue }
      for lower in levels[..<index].reversed() {
        guard let other = policy.pressure[lower]?.availableBelow,
          let ascending = own.isAbove(other)
        else { continue }
        if ascending {
          reportThreshold(upper: upper, own: own, lower: lower, other: other)
        }
        break
      }
    }
  }

  private func reportThreshold(
    upper: PressureLevel, own: PressureCondition.Amount, lower: PressureLevel,
    other: PressureCondition.Amount
  ) {
    guard
      let spot = place(
        "pressure.\(upper.name).available_below", "pressure.\(lower.name).available_below")
    else { return }
    spot.error(
      "thresholds out of order: `\(upper.name)` begins at \(own.policyText) available, before"
        + " `\(lower.name)` at \(other.policyText)",
      suggestion: "warning, urgent and critical need decreasing values")
  }

  /// Checks that a higher level can do at least as much as the one below.
  private func reach() {
    let levels: [PressureLevel] = [.warning, .urgent, .critical]
    for (lower, upper) in zip(levels, levels.dropFirst()) {
      let (below, above) = (policy.ladder[lower].reach, policy.ladder[upper].reach)
      // If `critical` has no `terminate`, `end()` reports that more clearly.
      guard let below, above.map({ $0 < below }) ?? (upper != .critical) else { continue }
      guard let spot = place("ladder.\(upper.name)", "ladder.\(lower.name)") else { continue }
      spot.error(
        "`\(upper.name)` does less than `\(lower.name)`, which includes"
          + " `\(below.text)`",
        suggestion: "end `\(upper.name)` with `\(below.text)`")
    }
  }

  /// Checks that the ladder has an end: it can free all memory of the workers.
  private func end() {
    if policy.pressure.critical == nil, let spot = place("pressure.critical") {
      spot.error(
        "`critical` can't be `never`: its rungs would never be taken",
        suggestion: "give it the smallest threshold, such as `{ available_below: 5% }`")
    }
    guard let spot = place("ladder.critical") else { return }
    switch policy.ladder.critical.reach {
    case nil:
      spot.error(
        "`critical` has no `terminate`: the ladder may free too little memory",
        suggestion: "end it with `terminate background, terminate foreground`")
    case .terminate(.foreground):
      break
    case let last?:
      spot.warning(
        "`critical` ends with `\(last.text)`: a foreground worker alone can exhaust the memory",
        suggestion: "end it with `terminate foreground`")
    }
  }

  private func footprints() {
    guard let largest = policy.hibernate.maxFootprint, largest < policy.hibernate.minFootprint,
      let spot = place("hibernate.max_footprint", "hibernate.min_footprint")
    else { return }
    spot.error(
      "`max_footprint` (\(largest.policyText)) is under `min_footprint`"
        + " (\(policy.hibernate.minFootprint.policyText)): nothing would ever be hibernated",
      suggestion: "to turn hibernation off, write `enabled: false`")
  }

  private func deadlines() {
    guard let after = policy.background.suspendAfter, policy.background.shedDeadline > after,
      let spot = place("background.shed_deadline", "background.suspend_after")
    else { return }
    spot.warning(
      "`shed_deadline` (\(policy.background.shedDeadline.policyText)) is longer than"
        + " `suspend_after` (\(after.policyText)): a worker may be suspended before it has answered"
    )
  }
}

extension PolicyChecks {
  /// Warns of a policy that protects all workers, because the ladder has no end then.
  private func protection() {
    guard !isOfWorker, !policy.terminate.forMemory, let spot = place("terminate.for_memory")
    else { return }
    spot.warning(
      "`terminate: never` protects all workers: the ladder may free too little memory",
      suggestion: "write it in the `policy` of the workers that need it")
  }
}

extension PressureCondition.Amount {
  /// Returns `nil` for a share and a size, which can't be compared without a machine.
  fileprivate func isAbove(_ other: PressureCondition.Amount) -> Bool? {
    switch (self, other) {
    case (.percent(let own), .percent(let theirs)): own > theirs
    case (.bytes(let own), .bytes(let theirs)): own > theirs
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
