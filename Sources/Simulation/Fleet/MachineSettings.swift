import Policy

extension MachineModel {
  /// Sets one of the costs by its name. The units are those of policy files, with finer ones:
  /// `1.3ms`, `64GB`, `20%`. Returns an error message, or `nil`.
  public mutating func set(_ key: String, _ text: String) -> String? {
    if let path = Self.durations[key] {
      return assign(Self.duration(text), to: path, key: key, expected: "a duration such as 1.3ms")
    }
    if let path = Self.sizes[key] {
      return assign(Self.size(text), to: path, key: key, expected: "a size such as 64GB")
    }
    if let path = Self.shares[key] {
      return assign(Self.share(text), to: path, key: key, expected: "a share from 0% to 100%")
    }
    let settings =
      Self.durations.keys.sorted() + Self.sizes.keys.sorted() + Self.shares.keys.sorted()
    return "unknown setting; known: \(settings.joined(separator: ", "))"
  }

  private mutating func assign<Value>(
    _ value: Value?, to path: WritableKeyPath<MachineModel, Value>, key: String,
    expected: String
  ) -> String? {
    guard let value else { return "\(key) must be \(expected)" }
    self[keyPath: path] = value
    // A given value counts for all workers.
    if path == \.trim.left || path == \.trim.returned { measuredTrims = [:] }
    return nil
  }

  private static func duration(_ text: String) -> Duration? {
    quantity(text, [("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 6e10), ("h", 3.6e12)])
      .map { .nanoseconds(Int64($0)) }
  }

  private static func size(_ text: String) -> ByteCount? {
    let units = [("KB", 1024.0), ("MB", 1_048_576), ("GB", 1_073_741_824), ("B", 1)]
    return quantity(text, units).flatMap { $0 < 1 ? nil : ByteCount(Int64($0)) }
  }

  private static func share(_ text: String) -> Double? {
    quantity(text, [("%", 0.01)]).flatMap { $0 <= 1 ? $0 : nil }
  }

  private static func quantity(_ text: String, _ units: [(String, Double)]) -> Double? {
    for (unit, scale) in units where text.hasSuffix(unit) {
      guard let number = Double(text.dropLast(unit.count)), number >= 0, number * scale < 1e18
      else { continue }
      return number * scale
    }
    return nil
  }

  private static var durations: [String: WritableKeyPath<MachineModel, Duration>] {
    [
      "suspended_wake": \.suspendedWake, "suspend": \.suspend, "resume_base": \.resumeBase,
      "resume_per_mb": \.resumePerMegabyte, "hibernate_base": \.hibernateBase, "exit": \.exit,
      "stall": \.stall, "trim_return_per_mb": \.trimReturnPerMegabyte,
    ]
  }
  private static var sizes: [String: WritableKeyPath<MachineModel, ByteCount>] {
    [
      "memory": \.memory, "hibernate_rate": \.hibernateRate,
      "hibernated_rest": \.hibernatedFootprint,
    ]
  }
  private static var shares: [String: WritableKeyPath<MachineModel, Double>] {
    [
      "image_share": \.imageShare, "reserve": \.reserve, "cooperating": \.cooperating,
      "shed_share": \.shedShare, "launched_share": \.launchedShare, "trim_rest": \.trim.left,
      "trim_return": \.trim.returned,
    ]
  }
}
