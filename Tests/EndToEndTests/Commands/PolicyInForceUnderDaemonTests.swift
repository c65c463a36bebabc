import Control
import TestSupport
import Testing

@testable import dormouse

@Suite("`policy show --effective` with a running daemon") struct PolicyInForceTests {
  private static let text = """
    policy_overrides:
      foreground: { mode: manual }
      background: { suspend_after: 100ms, shed_deadline: 100ms, safe_point: { after_wake: 0s } }
      hibernate: { after: never }
      early_wake: { within: 10m, max_idle: 1h }
    workers:
      web: { command: sleep 670, policy: { hibernate: { max_footprint: 64MB } } }
      other: { command: sleep 671 }
    """

  private func value(_ key: String, _ daemon: TestDaemon, worker: String) throws
    -> PolicyValueReport
  {
    let shown = try daemon.json(PolicyValuesReport.self, "policy", "show", "--worker", worker)
    #expect(shown.source == .daemon && shown.worker == worker)
    return try #require(shown.values.first { $0.key == key })
  }

  @Test(
    "`policy show --effective` shows the running daemon's values, not those of files edited since")
  func running() throws {
    let daemon = try TestDaemon(Self.text)
    try daemon.rewrite(
      "policy_overrides: { hibernate: { after: 5s } }\nworkers: { web: { command: sleep 1 } }\n")
    let table = try daemon.done("policy", "show", "--effective", "--worker", "web")
    let lines = table.split(separator: "\n").map {
      $0.split(separator: " ").joined(separator: " ")
    }
    #expect(lines.contains("hibernate.max_footprint 64MB \(daemon.configuration):8 (worker)"))
    #expect(lines.contains("hibernate.after never \(daemon.configuration):5 (override)"))
    #expect(try value("hibernate.after", daemon, worker: "web").from == "overrides")
    let machine = try daemon.json(PolicyValuesReport.self, "policy", "show")
    #expect(machine.worker == nil)
    #expect(machine.values.first { $0.key == "hibernate.max_footprint" }?.value == "16MB")

    let unknown = try daemon.verb("policy", "show", "--effective", "--worker", "wbe")
    #expect(unknown.code == 3 && unknown.error.contains("did you mean `web`?"), "\(unknown)")
  }

  @Test("`policy show --effective` marks a requested shadow mode and a learned idle time as such")
  func learned() throws {
    let daemon = try TestDaemon(Self.text)
    try daemon.done("shadow", "other")
    let mode = try value("mode", daemon, worker: "other")
    #expect(mode.value == "shadow" && mode.from == "request" && mode.declared == "enforce")

    try daemon.bringToFront("other", among: ["web", "other"])
    let isRaised = try eventually(within: .seconds(60)) {
      try daemon.wait("web", toBe: "suspended")
      try daemon.done("wake", "web")
      return try value("background.suspend_after", daemon, worker: "web").from == "learned"
    }
    #expect(isRaised, "\(daemon.logText)")
    let raised = try value("background.suspend_after", daemon, worker: "web")
    #expect(raised.declared == "100ms" && raised.text?.contains("idle time 100 ms") == true)
    #expect(raised.file == daemon.configuration)
    #expect(
      try daemon.done("policy", "show", "--effective", "--worker", "web")
        .contains("background.suspend_after is \(raised.value) instead of 100ms"))
  }

  @Test("Without a daemon, `policy show --effective` fails with exit code 4 if a socket was named")
  func withoutDaemon() throws {
    let daemon = try TestDaemon(Self.text, starts: false)
    let named = try daemon.verb("policy", "show", "--effective")
    #expect(named.code == 4, "\(named)")
    let both = try daemon.verb("policy", "show", "--effective", "ios-5")
    #expect(both.code == 64, "\(both)")
  }
}
