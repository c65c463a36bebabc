import Control
import Glibc
import JSONLines
import Linux
import TestSupport
import Testing

/// Workers in several states, for a page of metrics with everything in it.
private func daemonWithSleeper() throws -> TestDaemon {
  let daemon = try TestDaemon(
    """
    policy_overrides:
      background: { suspend_after: never }
    workers:
      idle: { command: [sleep, "1000"] }
      broken: { command: [sh, -c, "exit 3"] }
    """)
  try daemon.wait("broken", toBe: "terminated")
  try daemon.done("hibernate", "idle")
  try daemon.done("wake", "idle")
  try daemon.done("hibernate", "idle")
  return daemon
}

@Suite("`dormouse metrics`") struct MetricsVerbTests {
  @Test func `Metrics show what was done with a worker, and counters grow`() throws {
    let daemon = try daemonWithSleeper()
    let before = try daemon.done("metrics").split(separator: "\n")
    #expect(before.contains(#"dormouse_worker_state{worker="idle",state="hibernated"} 1"#))
    #expect(before.contains(#"dormouse_worker_hibernations_total{worker="idle"} 2"#))
    #expect(before.contains(#"dormouse_worker_wakes_total{worker="idle",from="hibernated"} 1"#))
    #expect(before.contains(#"dormouse_worker_ends_total{worker="broken",reason="crashed"} 1"#))
    #expect(before.contains(#"dormouse_worker_failed{worker="broken"} 1"#))
    #expect(before.contains(#"dormouse_wake_duration_seconds_count{from="hibernated"} 1"#))
    #expect(before.last == "# EOF")
    try daemon.done("wake", "idle")
    let after = try daemon.done("metrics").split(separator: "\n")
    #expect(after.contains(#"dormouse_worker_wakes_total{worker="idle",from="hibernated"} 2"#))
    #expect(after.contains(#"dormouse_worker_resume_duration_seconds_count{worker="idle"} 2"#))
  }

  @Test(
    "A file is replaced as a whole; without a daemon it says dormouse_up 0, and the exit code is 4")
  func file() throws {
    let daemon = try TestDaemon("workers: { idle: { command: [sleep, '1000'] } }")
    let path = "\(daemon.scratch.path)/dormouse.prom"
    #expect(try daemon.done("metrics", "-o", path) == "")
    let page = try readText(path)
    #expect(page.contains("\ndormouse_up 1\n") && page.contains(#"{worker="idle"}"#))
    #expect(!page.contains("# EOF"), "node_exporter reads the format of Prometheus")
    #expect(try listDirectory(daemon.scratch.path).contains { $0.hasSuffix(".partial") } == false)
    daemon.stop(timeout: .seconds(60))
    let outcome = try daemon.verb("metrics", "-o", path)
    #expect(outcome.code == 4 && outcome.error.contains("no daemon answers"))
    let lines = try readText(path).split(separator: "\n").filter { !$0.hasPrefix("#") }
    #expect(lines == ["dormouse_up 0"])
    let silent = try daemon.verb("metrics")
    #expect(silent.code == 4 && silent.output.isEmpty)
  }

  @Test func `A wrong format and a file that can't be written are refused`() throws {
    let daemon = try TestDaemon("")
    let wrong = try daemon.verb("metrics", "--format", "xml")
    #expect(wrong.code == 64 && wrong.error.contains("openmetrics"))
    let nowhere = try daemon.verb("metrics", "-o", "/nowhere/dormouse.prom")
    #expect(nowhere.code == 1 && nowhere.error.contains("/nowhere/dormouse.prom"))
  }

  @Test(
    "promtool accepts the metrics and the alert rules, and the rules fire as they should",
    .enabled(if: TestMachine.has("promtool"), "promtool isn't installed"))
  func promtool() throws {
    let daemon = try daemonWithSleeper()
    let page = try daemon.done("metrics", "--format", "prometheus")
    let file = try daemon.scratch.write("page.prom", page)
    let outcome = try Command(arguments: ["sh", "-c", "promtool check metrics < \(file)"])
      .run(in: daemon.scratch)
    #expect(outcome.code == 0 && outcome.error.isEmpty, "\(outcome)")
    let root = SourceTree.root
    for arguments in [
      ["check", "rules", "\(root)/Packaging/prometheus/dormouse.rules.yml"],
      ["test", "rules", "\(root)/Tests/Fixtures/dormouse.rules.test.yml"],
    ] {
      let outcome = try Command(arguments: ["promtool"] + arguments).run(in: daemon.scratch)
      #expect(outcome.code == 0, "\(outcome)")
    }
  }

  @Test(
    "A real Prometheus scrapes both formats and answers every query of dashboard and rules",
    .enabled(
      if: TestMachine.has("prometheus") && TestMachine.has("python3"),
      "prometheus isn't installed"),
    arguments: MetricsFormat.allCases)
  func scraped(format: MetricsFormat) throws {
    let daemon = try daemonWithSleeper()
    let matching = [
      #"dormouse_worker_state{worker="idle",state="hibernated"} == 1"#,
      #"dormouse_worker_hibernations_total{worker="idle"} == 2"#,
      #"dormouse_wake_duration_seconds_bucket{from="hibernated",le="+Inf"} == 1"#,
      #"dormouse_worker_resume_duration_seconds_count{worker="idle"} == 1"#,
      #"dormouse_build_info{version="\#(Dormouse.version)"}"#,
    ]
    let others = try Self.dashboardQueries() + Self.ruleQueries()
    #expect(others.count > 30)
    let directory = "\(daemon.scratch.path)/prometheus"
    mkdir(directory, 0o700)
    let input = try daemon.scratch.write(
      "queries", (matching + others).joined(separator: "\n") + "\n")
    let script = TestMachine.fixture("metrics_scrape.py")
    let call =
      "python3 \(script) \(directory) \(format.rawValue) \(TestMachine.executable) \(daemon.socket)"
    let outcome = try Command(arguments: ["sh", "-c", "exec \(call) < \(input)"])
      .run(in: daemon.scratch)
    #expect(outcome.code == 0, "\(outcome)")
    let lines = outcome.output.split(separator: "\n")
    #expect(lines.count == matching.count + others.count)
    for (line, query) in zip(lines, matching) { #expect(line == "1 \(query)") }
    for line in lines { #expect(!line.hasPrefix("error"), "\(line)") }
  }

  /// With Grafana's variables replaced.
  private static func dashboardQueries() throws -> [String] {
    let text = try SourceTree.text("Packaging/grafana/dormouse.json")
    let tree = try #require(JSON(Array(text.utf8)))
    return expressions(in: tree).map {
      $0.replacing("$instance", with: ".*").replacing("$worker", with: ".*")
        .replacing("$__rate_interval", with: "1m").replacing("$__range", with: "1h")
    }
  }

  private static func expressions(in tree: JSON) -> [String] {
    switch tree {
    case .object(let members):
      members.flatMap { member -> [String] in
        if member.name == "expr", let text = member.value.text { return [text] }
        return expressions(in: member.value)
      }
    case .array(let values): values.flatMap(expressions)
    default: []
    }
  }

  private static func ruleQueries() throws -> [String] {
    try SourceTree.text("Packaging/prometheus/dormouse.rules.yml")
      .split(separator: "\n").compactMap { line in
        let entry = line.drop { $0 == " " }
        return entry.hasPrefix("expr: ") ? String(entry.dropFirst(6)) : nil
      }
  }
}
