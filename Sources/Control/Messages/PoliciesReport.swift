/// The output of `policy list --json`.
public struct PoliciesReport: Codable, Hashable, Sendable {
  public struct Policy: Codable, Hashable, Sendable {
    public var name: String
    /// The summary in the policy's text; nil if it has none.
    public var summary: String?
    /// The path of the policy's file; nil if the policy is part of the program.
    public var file: String?
    /// True if the daemon uses it.
    public var isActive: Bool

    public init(name: String, summary: String?, file: String?, isActive: Bool) {
      self.name = name
      self.summary = summary
      self.file = file
      self.isActive = isActive
    }
  }

  public var policies: [Policy]

  public init(policies: [Policy]) { self.policies = policies }
}
