import Testing

@testable import Policy

@Suite struct `Rules of adoption` {
  private static func rule(
    _ name: String = "r", except: [ProcessPattern] = [],
    _ change: (inout ProcessPattern) -> Void
  ) -> AdoptionRule {
    var pattern = ProcessPattern()
    change(&pattern)
    var rule = AdoptionRule(name: name, matches: [pattern])
    rule.exceptions = except
    return rule
  }

  @Test func `A worker of a rule in shadow mode is in shadow mode, whatever the machine's mode is`()
  {
    var rule = Self.rule { $0.name = [Glob("a")] }
    #expect(rule.mode == .shadow && rule.effectivePolicy.mode == .shadow)
    rule.mode = .manage
    #expect(rule.effectivePolicy.mode == .enforce)
    rule.policy.mode = .shadow
    #expect(rule.effectivePolicy.mode == .shadow)
    #expect(rule.workerName(of: 4711) == "r-4711")
  }

  @Test func `Rules that choose the same have the same text, and others have another`() {
    let one = Self.rule("a") { $0.command = [Glob("x")] }
    var other = Self.rule("b") { $0.command = [Glob("x")] }
    other.limit = 3
    #expect(one.choice == other.choice)
    let changes: [(inout AdoptionRule) -> Void] = [
      { $0.matches[0].name = [Glob("y")] }, { $0.matches[0].olderThan = .seconds(1) },
      { $0.exceptions = $0.matches }, { $0.includesTerminals = true },
      { $0.matches[0].user = .me }, { $0.matches[0].minFootprint = .megabytes(1) },
    ]
    for change in changes {
      var changed = one
      change(&changed)
      #expect(changed.choice != one.choice)
    }
  }
}
