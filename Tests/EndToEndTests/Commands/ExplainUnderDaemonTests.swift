import Control
import Testing

@Suite("Explanations by a daemon") struct ExplainTests {
  private static let configuration = """
    policy_overrides: { background: { suspend_after: 1h } }
    workers:
      calm: { command: [sleep, "1000"] }
      busy: { command: [sleep, "1000"], importance: 50 }
    """

  @Test(
    "`explain` reports a worker's reason, its obstacles and its next state, as text and as JSON")
  func explain() throws {
    let daemon = try TestDaemon(Self.configuration)
    try daemon.done("suspend", "calm")
    let text = try daemon.done("explain", "calm")
    #expect(text.contains("calm: suspended for"), "\(text)")
    #expect(text.contains(": suspended on request"), "\(text)")
    #expect(text.contains("hibernate.min_footprint"), "\(text)")
    #expect(text.contains("`dormouse wake calm`"), "\(text)")
    let report = try daemon.json(ExplanationReport.self, "explain", "calm")
    #expect(report.next == "hibernated")
    #expect(
      report.obstacles.contains { $0.key == "hibernate.min_footprint" && $0.limit == 1 << 20 })
    #expect(try daemon.verb("explain", "ghost").code == 3)
    for wrong in [[], ["--savings", "--next"], ["--savings", "calm"]] {
      #expect(try daemon.enter(["explain"] + wrong).code == 64, "\(wrong)")
    }
  }
}
