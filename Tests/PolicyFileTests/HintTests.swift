import Testing

@testable import PolicyFile

@Suite struct `Hints for mistyped keys` {
  /// Texts in which `KEY` is at each kind of location for a key.
  private static let contexts = [
    "workers: { web: { command: sleep 1, KEY: {} } }",
    "workers: { web: { command: sleep 1, readiness: { KEY: 8080 } } }",
    "workers: { web: { command: sleep 1, liveness: { KEY: 8080 } } }",
    "workers: { web: { command: sleep 1, shed: { KEY: 8080 } } }",
    "workers: { web: { command: sleep 1, limits: { KEY: 8080 } } }",
    "workers: { web: { command: sleep 1, restart: { KEY: 8080 } } }",
    "workers: { web: { command: sleep 1, health_checks_while_asleep: { KEY: 8080 } } }",
    "workers: { web: { command: sleep 1, listen: [{ KEY: 8080 }] } }",
    "workers: { web: { command: sleep 1, policy: { KEY: 8080 } } }",
    "policy_overrides: { hibernate: { KEY: 8080 } }",
    "KEY: {}",
  ]

  @Test(
    arguments: contexts, ["htp", "tpc", "htttp", "comand", "singal", "memry", "polcy", "budgt"])
  func `A suggested key is valid at the position of the mistyped one`(context: String, typo: String)
  {
    let first = configuration(context.replacing("KEY", with: typo))
    let hints = first.diagnostics.compactMap(\.suggestion).filter { $0.hasPrefix("did you mean `") }
    for hint in hints {
      let key = hint.dropFirst("did you mean `".count).prefix { $0 != "`" }
      let second = configuration(context.replacing("KEY", with: String(key)))
      let unknown = second.diagnostics.filter { $0.message.contains("unknown key `\(key)`") }
      #expect(unknown.isEmpty, "\(typo) → \(key): \(second.diagnostics)")
    }
  }

  @Test func `An error about a worker at the top says that the key workers is missing`() {
    let result = configuration("web:\n  command: sleep 1\npolicy: server\n")
    #expect(result.errors.count == 1, "\(result.diagnostics)")
    #expect(
      result.errors.first?.message == "`web` is a worker at the top: `workers:` is missing")
    #expect(result.errors.first?.suggestion?.contains("indent") == true)
    #expect(result.errors.first?.position?.line == 1)
  }

  @Test func `Options take the units of policies, days and weeks, and seconds without a unit`()
    throws
  {
    let times: [(String, Duration)] = [
      ("5", .seconds(5)), ("0.5", .milliseconds(500)), ("500ms", .milliseconds(500)),
      ("90s", .seconds(90)), ("2m", .seconds(120)), ("1h", .seconds(3600)),
      ("7d", .seconds(604_800)),
      ("2w", .seconds(1_209_600)),
    ]
    for (text, time) in times {
      #expect(try OptionUnits.duration(text).get() == time, "\(text)")
    }
    for text in ["", "-5", "5 parsecs", "1e3", "99999999d", "s"] {
      #expect(throws: OptionUnits.UnitError.self, "\(text)") {
        try OptionUnits.duration(text).get()
      }
    }
  }
}
