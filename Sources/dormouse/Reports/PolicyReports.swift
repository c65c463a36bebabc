import Control
import PolicyFile

/// The output of `policy list --json`.
struct PoliciesReport: Codable, Hashable, Sendable {
  struct Policy: Codable, Hashable, Sendable {
    var name: String
    /// The summary in the policy's text; nil if it has none.
    var summary: String?
    /// The path of the policy's file; nil if the policy is part of the program.
    var file: String?
    /// True if the daemon uses it.
    var isActive: Bool
  }

  var policies: [Policy]
}

/// The output of `dormouse policy list`: a line for each policy.
func renderPolicies(
  _ policies: [PoliciesReport.Policy], width: Int? = nil, color: Bool = false
) -> String {
  var table = Table(columns: [.init(title: "POLICY", minWidth: 12), "ACTIVE", "FOR"])
  table.rows = policies.map { policy in
    [
      .init(escaped(policy.name)), policy.isActive ? .init("yes", .green) : .init("-"),
      .init(policy.summary.map(escaped) ?? "-"),
    ]
  }
  return table.lines(width: width, color: color, wrapsLast: true).joined(separator: "\n") + "\n"
}

/// The output of `policy show --json`.
struct PolicyValuesReport: Codable, Hashable, Sendable {
  enum Source: String, Codable, Hashable, Sendable {
    /// The running daemon has responded.
    case daemon
    /// The files were read, because they were named or no daemon runs.
    case files
  }

  var source: Source
  /// The worker's name; absent for the machine's values.
  var worker: String?
  var values: [PolicyValueReport]
}

/// The output of `policy diff --json`.
struct PolicyDifferencesReport: Codable, Hashable, Sendable {
  var differences: [PolicyDifference]
}

/// The output of `dormouse policy diff`: a line for each key. In a narrow terminal, texts that
/// don't fit follow below their lines.
func renderPolicyDifferences(
  _ differences: [PolicyDifference], left: String, right: String, width: Int? = nil,
  color: Bool = false
) -> String {
  var table = Table(columns: [
    "KEY", .init(title: escaped(left)), .init(title: escaped(right)), "",
  ])
  table.rows = differences.map { difference in
    [
      .init(escaped(difference.key)), .init(escaped(difference.left), .red),
      .init(escaped(difference.right), .green), .init(difference.meaning ?? "", .dim),
    ]
  }
  let lines = table.spilled(
    [[""], [escaped(left), escaped(right)]], width: width, color: color)
  return lines.joined(separator: "\n") + "\n"
}
