import Policy
import Testing

@testable import PolicyFile

@Suite struct `Values of a policy from a command line` {
  private func applied(_ arguments: String...) throws -> LifecyclePolicy {
    try PolicySettings(arguments).applied(to: LifecyclePolicy())
  }

  @Test func `Keys and values are written as in a policy file`() throws {
    let policy = try applied(
      "hibernate.after=5m", "mode=shadow", "terminate.order=[band, regret]",
      "pressure.warning={ available_below: 20% }", "foreground.max=unlimited",
      "background.safe_point.hold=0s")
    #expect(policy.hibernate.after == .seconds(300) && policy.mode == .shadow)
    #expect(policy.terminate.order == [.band, .regret])
    #expect(policy.pressure.warning == PressureCondition(availableBelow: .percent(20)))
    #expect(policy.foreground.max == nil && policy.background.safePoint.hold == .zero)
  }

  @Test func `The last one of two for the same key applies`() throws {
    let policy = try applied("hibernate.after=5m", "hibernate={ after: 1m }", "hibernate.after=7s")
    #expect(policy.hibernate.after == .seconds(7))
  }

  @Test func `Values are checked together, not one after the other`() throws {
    let policy = try applied("hibernate.max_footprint=512KB", "hibernate.min_footprint=256KB")
    #expect(policy.hibernate.maxFootprint == .kilobytes(512))
  }

  static let mistakes: [(String, String)] = [
    ("hibernate.aftr=5m", "unknown key `hibernate.aftr`; did you mean `hibernate.after`?"),
    ("demote_after=5m", "unknown key `demote_after`; did you mean `hibernate.demote_after`?"),
    ("zebra=5m", "unknown key `zebra`; `dormouse policy show` lists the keys"),
    ("=5m", "unknown key ``; `dormouse policy show` lists the keys"),
    ("hibernate.after", "a value is missing; write `KEY=VALUE`"),
    ("hibernate.after=", "`after` must be a duration such as `10s`, or `never`, and is empty"),
    ("hibernate.after=5", "`after` needs a unit; write `5s`"),
    ("hibernate.after=5m\nmode: shadow", "the value has a line break"),
    ("hibernate=5m", "`hibernate` must be a mapping of keys to values, not `5m`"),
    ("name=x", "`name` can't be overridden: it is the policy's own"),
    (
      "extends=server",
      "`extends` belongs at the top of a policy file; write such a file, and name it in `policy`"
    ),
    (
      "hibernate.max_footprint=512KB",
      "`max_footprint` (512KB) is under `min_footprint` (1MB): nothing would ever be hibernated; "
        + "to turn hibernation off, write `enabled: false`"
    ),
  ]

  @Test(arguments: mistakes) func `A mistake names the setting, and suggests another`(
    argument: String, text: String
  ) throws {
    let error = #expect(throws: SettingError.self) { try self.applied(argument) }
    #expect(error?.description.hasSuffix(": \(text)") == true, "\(error?.description ?? "")")
    #expect(error?.description.hasPrefix("`\(shortened(argument))`") == true)
  }

  @Test func `A changed value has the option as its origin, and the others keep theirs`() throws {
    let configuration = try #require(
      configuration("policy_overrides: { hibernate: { after: 20s, cooldown: 9s } }").value)
    let values = try PolicySettings(["hibernate.after=5m"]).applied(
      to: EffectivePolicy(configuration.policy, origins: configuration.origins).values,
      of: configuration.policy)
    let after = try #require(values.first { $0.path == "hibernate.after" })
    #expect(after.text == "5m" && after.origin == Origin(layer: .option))
    let cooldown = try #require(values.first { $0.path == "hibernate.cooldown" })
    #expect(cooldown.text == "9s" && cooldown.origin.layer == .overrides)
  }
}
