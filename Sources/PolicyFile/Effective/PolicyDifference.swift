import Policy

/// A key in which two policies differ.
public struct PolicyDifference: Codable, Hashable, Sendable {
  public var key: String
  /// The value of the first policy.
  public var left: String
  /// The value of the second policy.
  public var right: String
  /// What the change from left to right means for workers. `nil`: a sentence isn't enough to say
  /// that.
  public var meaning: String?

  /// The difference as text: `hibernate.after 30s → 5m`.
  var text: String { "\(key) \(left) → \(right)" }
}

extension PolicyFile {
  /// Returns the keys whose values differ, in the order of the documentation. The name isn't one of
  /// them.
  public static func differences(
    from left: LifecyclePolicy, to right: LifecyclePolicy
  ) -> [PolicyDifference] {
    // This is the usual case, and `ps` asks for each worker.
    if left == right { return [] }
    return PolicyKeys.all.leaves().compactMap { path, key in
      guard path != "name", let text = key.write(left)?.flow, let other = key.write(right)?.flow,
        other != text
      else { return nil }
      let meaning = key.change.sentence(from: text, to: other)
      return PolicyDifference(key: path, left: text, right: other, meaning: meaning)
    }
  }

  /// Returns the differences that the machine's policies, before and after, don't have as well.
  static func differences(
    from left: LifecyclePolicy, to right: LifecyclePolicy,
    besideThoseOf machine: (old: LifecyclePolicy, new: LifecyclePolicy)?
  ) -> [PolicyDifference] {
    let everywhere = Set(machine.map { differences(from: $0.old, to: $0.new) } ?? [])
    return differences(from: left, to: right).filter { !everywhere.contains($0) }
  }
}

extension ChangeMeaning {
  func sentence(from left: String, to right: String) -> String? {
    if let sentence = meanings[right] { return sentence }
    let never = neverIsSmallest ? 0 : Double.infinity
    guard let from = left == "never" ? never : Self.amount(left),
      let to = right == "never" ? never : Self.amount(right), from != to
    else { return nil }
    return to < from ? less : more
  }

  /// A number of one unit, for comparison. `nil`: the text is no number, or has another kind of
  /// unit.
  private static func amount(_ text: String) -> Double? {
    if text == "unlimited" { return .infinity }
    guard let quantity = Quantity(text) else { return nil }
    let unit = quantity.unit
    let size = sizeUnits.first { $0.name == unit }?.bytes
    guard let scale = ["", "%"].contains(unit) ? 1_000 : durationUnits[unit] ?? size,
      let value = quantity.scaled(by: scale)
    else { return nil }
    return quantity.negative ? -Double(value) : Double(value)
  }
}
