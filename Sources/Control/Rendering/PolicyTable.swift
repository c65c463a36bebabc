/// A value of a policy and where it comes from, as `policy show --effective --json` prints it.
public struct PolicyValueReport: Codable, Hashable, Sendable {
  /// With dots: `hibernate.max_footprint`.
  public var key: String
  /// As a policy file writes it.
  public var value: String
  /// `default`, `policy`, `overrides` or `worker`.
  public var from: String
  /// Absent where it is the default.
  public var file: String?
  public var line: Int?

  public init(key: String, value: String, from: String, file: String?, line: Int?) {
    self.key = key
    self.value = value
    self.from = from
    self.file = file
    self.line = line
  }

  var origin: String {
    guard let file else { return "default" }
    let place = line.map { "\(file):\($0)" } ?? file
    return from == "policy" ? place : "\(place) (\(from == "worker" ? "worker" : "override"))"
  }
}

/// `dormouse policy show --effective`: a line a value.
public func renderPolicyValues(_ values: [PolicyValueReport], color: Bool = false) -> String {
  var table = Table(columns: [
    .init(title: "KEY"), .init(title: "VALUE"), .init(title: "FROM"),
  ])
  table.rows = values.map { value in
    let shade: Color? =
      switch value.from {
      case "default": .dim
      case "policy": nil
      case "worker": .green
      default: .yellow
      }
    return [
      .init(escaped(value.key)), .init(escaped(value.value), shade),
      .init(escaped(value.origin), shade),
    ]
  }
  // Paths are there to be copied: no line is cut.
  return table.lines(width: nil, color: color).joined(separator: "\n") + "\n"
}

/// A key in which two policies differ, as `policy diff --json` prints it.
public struct PolicyDifferenceReport: Codable, Hashable, Sendable {
  public var key: String
  public var left: String
  public var right: String
  /// What the step from left to right means for workers.
  public var meaning: String?

  public init(key: String, left: String, right: String, meaning: String?) {
    self.key = key
    self.left = left
    self.right = right
    self.meaning = meaning
  }
}

/// `dormouse policy diff`: a line a key.
public func renderPolicyDifferences(
  _ differences: [PolicyDifferenceReport], left: String, right: String, color: Bool = false
) -> String {
  var table = Table(columns: [
    .init(title: "KEY"), .init(title: escaped(left)), .init(title: escaped(right)),
    .init(title: ""),
  ])
  table.rows = differences.map { difference in
    [
      .init(escaped(difference.key)), .init(escaped(difference.left), .red),
      .init(escaped(difference.right), .green), .init(difference.meaning ?? "", .dim),
    ]
  }
  return table.lines(width: nil, color: color).joined(separator: "\n") + "\n"
}
