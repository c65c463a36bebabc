import Control
import TestSupport
import Testing

@Suite("Metrics") struct OpenMetricsTests {
  /// A page with everything that a report can have.
  static func page(_ format: MetricsFormat = .openMetrics) throws -> String {
    renderOpenMetrics(
      daemon: try sample(DaemonReport.self, "daemon"), workers: [try worker()], format: format)
  }

  private static func worker() throws -> WorkerReport {
    var worker = try sample(WorkerReport.self, "worker")
    worker.name = "web"
    return worker
  }

  private static func sample<Value: Decodable>(_ type: Value.Type, _ name: String) throws -> Value {
    let schema = try DocumentSchema("common.json#/$defs/\(name)")
    return try WireCodec.decode(type, from: try schema.sample().line)
  }

  /// The lines that aren't comments, as `name{labels}` and value.
  private static func samples(_ page: String) -> [String: String] {
    let lines = page.split(separator: "\n").filter { !$0.hasPrefix("#") }
    return Dictionary(
      lines.compactMap { line in
        line.lastIndex(of: " ").map { (String(line[..<$0]), String(line[$0...].dropFirst())) }
      }
    ) { first, _ in first }
  }

  @Test("A page ends with # EOF, and each sample stands below its metric's HELP, TYPE and UNIT")
  func form() throws {
    let lines = try Self.page().split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.suffix(2) == ["# EOF", ""])
    var family: Substring = ""
    var seen: Set<Substring> = []
    for line in lines.dropLast(2) {
      let tokens = line.split(separator: " ", maxSplits: 3)
      switch line.hasPrefix("# ") ? String(tokens[1]) : "" {
      case "HELP":
        family = tokens[2]
        #expect(seen.insert(family).inserted, "\(family) is there twice")
      case "TYPE", "UNIT":
        #expect(tokens[2] == family)
        if tokens[1] == "UNIT" { #expect(family.hasSuffix("_\(tokens[3])")) }
      default: #expect(line.hasPrefix(family), "\(line)")
      }
    }
    #expect(seen.count > 50)
  }

  @Test func `A worker has one sample for each state, and the one that it is in is 1`() throws {
    var worker = WorkerReport(name: "web", state: "hibernated")
    worker.footprint = 4096
    let samples = Self.samples(
      renderOpenMetrics(daemon: Sample.daemon, workers: [worker]))
    let states = samples.filter { $0.key.hasPrefix("dormouse_worker_state{") }
    #expect(states.count == 10)
    #expect(
      states.filter { $0.value == "1" }.map(\.key)
        == [#"dormouse_worker_state{worker="web",state="hibernated"}"#])
    #expect(samples[#"dormouse_worker_footprint_bytes{worker="web"}"#] == "4096")
    #expect(samples[#"dormouse_pressure_level{level="warning"}"#] == "1")
    #expect(samples["dormouse_up"] == "1")
  }

  @Test("Quotes, backslashes and line breaks in a name are escaped, and other characters are not")
  func escaping() throws {
    let bytes: [UInt8] = Array("a\"b\\c\nd\u{E9}".utf8) + [0xFF]
    let worker = WorkerReport(name: String(decoding: bytes, as: UTF8.self), state: "background")
    let page = renderOpenMetrics(daemon: Sample.daemon, workers: [worker])
    #expect(page.contains(#"dormouse_worker_band{worker="a\"b\\c\ndé"# + "\u{FFFD}\"} 0\n"))
  }

  @Test("The label `wrapper` distinguishes two workers with one name, and no sample is there twice")
  func sameName() throws {
    var wrapped = WorkerReport(name: "gopls", state: "background")
    wrapped.wrapper = 4711
    let page = renderOpenMetrics(
      daemon: Sample.daemon,
      workers: [WorkerReport(name: "gopls", state: "suspended"), wrapped, wrapped])
    #expect(page.contains(#"dormouse_worker_band{worker="gopls"} 0"#))
    #expect(page.contains(#"dormouse_worker_band{worker="gopls",wrapper="4711"} 0"#))
    let lines = page.split(separator: "\n").filter { !$0.hasPrefix("#") }
    let keys = lines.map { $0[..<($0.lastIndex(of: " ") ?? $0.endIndex)] }
    #expect(Set(keys).count == keys.count)
  }

  @Test("Counters have the suffix _total in both formats, and the series are the same")
  func formats() throws {
    let open = try Self.page()
    let classic = try Self.page(.prometheus)
    #expect(Self.samples(open) == Self.samples(classic))
    #expect(open.contains("# TYPE dormouse_worker_launches counter\n"))
    #expect(classic.contains("# TYPE dormouse_worker_launches_total counter\n"))
    #expect(open.contains("# TYPE dormouse_build info\n"))
    #expect(classic.contains("# TYPE dormouse_build_info gauge\n"))
    #expect(!classic.contains("# UNIT") && !classic.contains("# EOF"))
  }

  @Test func `The buckets of wakes add up, and the last one is the number of all`() throws {
    var daemon = Sample.daemon
    var measured = DaemonMeasurements(upSeconds: 5)
    measured.wakeTimes = [
      .init(from: "hibernated", seconds: 1.75, bounds: [0.25, 1], counts: [2, 0, 1])
    ]
    daemon.measurements = measured
    let samples = Self.samples(renderOpenMetrics(daemon: daemon, workers: []))
    let name = "dormouse_wake_duration_seconds"
    #expect(samples["\(name)_bucket{from=\"hibernated\",le=\"0.25\"}"] == "2")
    #expect(samples["\(name)_bucket{from=\"hibernated\",le=\"1.0\"}"] == "2")
    #expect(samples["\(name)_bucket{from=\"hibernated\",le=\"+Inf\"}"] == "3")
    #expect(samples["\(name)_count{from=\"hibernated\"}"] == "3")
    #expect(samples["\(name)_sum{from=\"hibernated\"}"] == "1.75")
  }

  @Test(
    "A worker that ended with a failure counts as failed, one that was stopped or is done doesn't",
    arguments: [
      ("backing_off", nil, 1), ("not_started", nil, 1), ("gave_up", nil, 1), ("signaled", nil, 1),
      ("exited", 1, 1), ("end_unknown", nil, 1),
      ("exited", 0, 0), ("requested_stop", nil, 0), ("never_started", nil, 0),
    ] as [(String, Int32?, Int)])
  func failed(code: String, status: Int32?, expected: Int) throws {
    var worker = WorkerReport(name: "web", state: "terminated")
    worker.reason = CodedText(code, "")
    worker.lastExit = status.map { ExitStatusReport(code: "exited", text: "", status: $0) }
    let samples = Self.samples(renderOpenMetrics(daemon: Sample.daemon, workers: [worker]))
    #expect(samples[#"dormouse_worker_failed{worker="web"}"#] == "\(expected)")
  }

  @Test func `Without a daemon the page says only that`() {
    let page = renderOpenMetrics(daemon: nil, workers: [])
    #expect(Self.samples(page) == ["dormouse_up": "0"])
    #expect(page.hasSuffix("# EOF\n"))
  }
}

@Suite("Files that name metrics") struct MetricNameTests {
  @Test(arguments: [
    "Packaging/grafana/dormouse.json", "Packaging/prometheus/dormouse.rules.yml",
    "Tests/Fixtures/dormouse.rules.test.yml", "docs/metrics.md",
  ])
  func `Each metric in the dashboard, the rules and the documentation exists`(file: String) throws {
    let lines = try OpenMetricsTests.page(.prometheus).split(separator: "\n")
    let documented = Set(
      lines.map { line in
        // A histogram has a name of its own, too, which no sample has.
        line.hasPrefix("# ")
          ? String(line.split(separator: " ")[2]) : String(line.prefix { $0 != "{" && $0 != " " })
      })
    let named = Set(
      try SourceTree.text(file).matches(of: /dormouse_[a-z_]+/)
        .map { String($0.output) })
    #expect(named.count > 5)
    #expect(named.subtracting(documented) == [], "\(file)")
  }

  @Test func `The documentation lists every metric`() throws {
    let text = try SourceTree.text("docs/metrics.md")
    for line in try OpenMetricsTests.page(.prometheus).split(separator: "\n")
    where line.hasPrefix("# TYPE ") {
      let name = line.split(separator: " ")[2]
      #expect(text.contains("`\(name)"), "\(name)")
    }
  }
}
