/// A value of a policy and its origin, as `policy show --effective --json` prints it.
public struct PolicyValueReport: Codable, Hashable, Sendable {
  /// The key with dots: `hibernate.max_footprint`.
  public var key: String
  /// The value as a policy file contains it.
  public var value: String
  /// The origin: `default`, `policy`, `overrides`, `worker`, `rule` or `option` (`--set`). For a
  /// running daemon it may also be `learned`, `request`, `environment` or `wrapper`, if the value
  /// of the files was replaced.
  public var from: String
  /// The file of the value, or of the replaced value; absent if it is the default.
  public var file: String?
  public var line: Int?
  /// The value of the files, if it was replaced. `text` says why it doesn't apply, in a sentence.
  public var declared: String?
  public var text: String?

  public init(key: String, value: String, from: String, file: String?, line: Int?) {
    self.key = key
    self.value = value
    self.from = from
    self.file = file
    self.line = line
  }

  var origin: String {
    guard declared == nil else { return from }
    guard let file else { return from == "option" ? "--set" : "default" }
    let position = line.map { "\(file):\($0)" } ?? file
    return from == "policy"
      ? position : "\(position) (\(["worker", "rule"].contains(from) ? from : "override"))"
  }

  /// A note such as `hibernate.after is 2m instead of 30s (dormouse.yaml:4): …`.
  fileprivate var replacement: String? {
    // All values of a wrapper are its own for the same reason, so there is no note.
    guard from != "wrapper" else { return nil }
    return declared.map {
      let position = file.map { " (\($0)\(line.map { ":\($0)" } ?? ""))" } ?? ""
      return "\(key) is \(value) instead of \($0)\(position)" + (text.map { ": \($0)" } ?? "")
    }
  }
}

/// The output of `dormouse policy show --effective`: a line for each value. In a narrow terminal,
/// long values and paths follow below their lines.
public func renderPolicyValues(
  _ values: [PolicyValueReport], width: Int? = nil, color: Bool = false
) -> String {
  var table = Table(columns: ["KEY", "VALUE", "FROM"])
  table.rows = values.map { value in
    let shade: Color? =
      switch value.from {
      case "default": .dim
      case "policy": nil
      case "worker", "rule", "option": .green
      case "learned", "request", "environment", "wrapper": .cyan
      default: .yellow
      }
    return [
      .init(escaped(value.key)), .init(escaped(value.value), shade),
      .init(escaped(value.origin), shade),
    ]
  }
  let notes = values.compactMap(\.replacement).flatMap {
    wrapped(escaped($0), to: width, indent: 2)
  }
  let lines =
    table.spilled([["VALUE"], ["FROM"]], width: width, color: color)
    + (notes.isEmpty ? [] : [""] + notes)
  return lines.joined(separator: "\n") + "\n"
}
