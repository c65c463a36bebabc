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
