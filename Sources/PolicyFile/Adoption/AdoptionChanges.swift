import Policy

extension AdoptionRule {
  /// Returns the differences between two lists of rules, a clause for each rule.
  ///
  /// - Parameter machine: the policy for all workers, before and after. A change that is the same
  ///   there isn't listed for each rule.
  public static func changes(
    from old: [AdoptionRule], to new: [AdoptionRule],
    machine: (old: LifecyclePolicy, new: LifecyclePolicy)
  ) -> [String] {
    let before = Dictionary(old.map { ($0.name, $0) }) { first, _ in first }
    let names = Set(new.map(\.name))
    let removed = old.filter { !names.contains($0.name) }.map { "rule \($0.name) removed" }
    let others = new.compactMap { rule -> String? in
      guard let earlier = before[rule.name] else { return "rule \(rule.name) added" }
      let keys = rule.changedKeys(from: earlier, machine)
      return keys.isEmpty ? nil : "rule \(rule.name): \(keys.joined(separator: ", "))"
    }
    // The first rule that matches a process decides, so the order matters.
    let moved = old.map(\.name) != new.map(\.name) && removed.isEmpty && old.count == new.count
    return removed + others + (moved && others.isEmpty ? ["order of the rules"] : [])
  }

  private func changedKeys(
    from old: AdoptionRule, _ machine: (old: LifecyclePolicy, new: LifecyclePolicy)
  ) -> [String] {
    var keys: [String] = []
    if old.matches != matches { keys.append("match") }
    if old.exceptions != exceptions { keys.append("except") }
    if old.includesTerminals != includesTerminals { keys.append("terminal") }
    if old.mode != mode { keys.append("mode \(old.mode.rawValue) → \(mode.rawValue)") }
    if old.mayTerminate != mayTerminate { keys.append("may_terminate") }
    if old.limit != limit { keys.append("limit \(old.limit) → \(limit)") }
    if old.importance != importance { keys.append("importance \(old.importance) → \(importance)") }
    return keys
      + PolicyFile.differences(from: old.policy, to: policy, besideThoseOf: machine).map(\.text)
  }
}
