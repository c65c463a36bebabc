/// What `policy list --json` prints.
public struct PoliciesReport: Codable, Hashable, Sendable {
  public struct Policy: Codable, Hashable, Sendable {
    public var name: String
    /// nil: its text doesn't say.
    public var summary: String?
    /// nil: it is part of the program.
    public var file: String?
    /// The daemon uses it.
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
