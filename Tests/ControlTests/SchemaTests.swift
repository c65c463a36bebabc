import Control
import JSONLines
import TestSupport
import Testing

@testable import dormouse

/// docs/schemas describes every key that the types have, and no other key.
@Suite("The JSON Schemas of docs/schemas") struct SchemaTests {
  @Test(
    "Each key of a JSON Schema has a description, and no keyword is used that the tests don't check"
  )
  func descriptions() throws {
    let names = DocumentSchema.names()
    #expect(names.count >= 21)
    for name in names { #expect(try DocumentSchema(name).flaws() == [], "\(name)") }
  }

  @Test("A schema's sample is valid, and a key or a code that it doesn't describe is a problem")
  func strict() throws {
    for name in DocumentSchema.names() {
      let schema = try DocumentSchema(name)
      var document = try schema.sample()
      #expect(try schema.problems(of: document) == [], "\(name)")
      document.set("surprise", .int(1))
      #expect(try schema.problems(of: document) == ["$.surprise isn't documented"], "\(name)")
    }
    let schema = try DocumentSchema("explain")
    var document = try schema.sample()
    document.set("because", .object([.init("code", .string("whim")), .init("text", .string(""))]))
    #expect(
      try schema.problems(of: document) == ["$.because.code is `whim`, which isn't documented"])
    #expect(try schema.problems(of: .object([])).contains("$.worker is missing"))
    #expect(try schema.problems(of: .int(1)) == ["$ isn't of type object"])
  }

  @Test func `Each JSON document has the keys of its schema, and no other key`() throws {
    try same(WorkerReport.self, "common.json#/$defs/worker")
    try same(DaemonReport.self, "common.json#/$defs/daemon")
    try same(TopFrame.self, "top")
    try same(LogLineReport.self, "logs")
    try same(ProjectsReport.self, "ls")
    try same(DirtyMemoryReport.self, "footprint-maps")
    try same(ExplanationReport.self, "explain")
    try same(RankingReport.self, "explain-next")
    try same(KeptMemoryReport.self, "explain-savings")
    try same(EventRecord.self, "events")
    try same(WeeksReport.self, "report")
    // If there is no report, the output has these two keys.
    try same(JetsamRecord.self, "jetsam", but: ["code", "text"])
    try same(DoctorReport.self, "common.json#/$defs/doctorReport")
    try same(DaemonContext.self, "common.json#/$defs/daemonContext")
    try same(OutcomeReport.self, "outcome")
    try same(AdoptionPreviewReport.self, "adopt-dry-run")
    try same(PolicyCheckReport.self, "policy-check")
    try same(ImportReport.self, "import")
    try same(IntegrationReport.self, "integrate")
    try same(PolicyValuesReport.self, "policy-show")
    try same(PolicyDifferencesReport.self, "policy-diff")
    try same(PoliciesReport.self, "policy-list")
    try same(ReplayReport.self, "replay")
  }

  @Test func `The JSON of doctor has both examinations and the keys of its schema`() throws {
    let schema = try DocumentSchema("doctor")
    let report = try decode(DoctorReport.self, "common.json#/$defs/doctorReport")
    var shell = report
    shell.checks[0].result = .missing
    let context = try decode(DaemonContext.self, "common.json#/$defs/daemonContext")
    let both = DoctorDocument(
      daemon: DaemonExamination(context: context, report: report), shell: shell)
    #expect(both.differences.map(\.id) == [shell.checks[0].id])
    let tree = try json(both)
    #expect(try schema.problems(of: tree) == [])
    guard case .object(let members) = tree else { throw TestFailure("no object") }
    #expect(Set(members.map(\.name)) == (try schema.keys()))
    #expect(tree["askedOf"]?.text == "daemon")
    let alone = try json(DoctorDocument(shell: shell))
    #expect(try schema.problems(of: alone) == [])
    #expect(alone["askedOf"]?.text == "shell" && alone["daemon"] == nil)
  }

  /// Checks that the schema's sample can be decoded and encoded without loss, and contains each of
  /// the type's own keys.
  private func same<Value: Codable>(
    _ type: Value.Type, _ name: String, but others: Set<String> = []
  ) throws {
    let schema = try DocumentSchema(name)
    let value = try decode(type, name)
    let keys = try schema.keys().subtracting(["schema"]).subtracting(others)
    #expect(Self.labels(of: value) == keys, "\(type)")
    // A nested key that the types leave out when they are encoded again isn't a key of theirs.
    var expected = try schema.sample()
    var actual = try json(value)
    for key in others.union(["schema"]) {
      expected.set(key, .null)
      actual.set(key, .null)
    }
    #expect(Self.sorted(actual) == Self.sorted(expected), "\(type)")
    try compare(value, schema, [])
  }

  /// Compares all nested keys, also those of optional values.
  private func compare(_ value: Any, _ schema: DocumentSchema, _ path: [String]) throws {
    for child in Mirror(reflecting: value).children {
      guard let label = child.label, let inner = Self.structure(child.value) else { continue }
      let keyPath = path + [label]
      #expect(Self.labels(of: inner) == (try schema.keys(at: keyPath)), "\(keyPath)")
      try compare(inner, schema, keyPath)
    }
  }

  /// The structure in an optional or in an array; nil if there is none.
  private static func structure(_ value: Any) -> Any? {
    let mirror = Mirror(reflecting: value)
    switch mirror.displayStyle {
    case .optional, .collection: return mirror.children.first.flatMap { structure($0.value) }
    case .struct where !(value is any LosslessStringConvertible): return value
    default: return nil
    }
  }

  private static func labels(of value: Any) -> Set<String> {
    Set(Mirror(reflecting: value).children.compactMap(\.label))
  }

  private func decode<Value: Decodable>(_ type: Value.Type, _ name: String) throws -> Value {
    try WireCodec.decode(type, from: try DocumentSchema(name).sample().line)
  }

  private func json(_ value: some Encodable) throws -> JSON {
    try #require(JSON(try WireCodec.json(for: JSONDocument(value))))
  }

  private static func sorted(_ value: JSON) -> JSON {
    switch value {
    case .object(let members):
      .object(
        members.sorted { $0.name < $1.name }.map { JSON.Member($0.name, sorted($0.value)) })
    case .array(let values): .array(values.map(sorted))
    default: value
    }
  }
}

@Suite("Codes of the JSON documents") struct DocumentedCodeTests {
  @Test func `Each code that the sources produce is in a schema`() throws {
    var documented: Set<String> = []
    for name in DocumentSchema.names() {
      for (_, values) in try DocumentSchema(name).examples() { documented.formUnion(values) }
    }
    var count = 0
    for (file, pattern) in Self.places {
      for match in try SourceTree.text(file).matches(of: pattern) {
        count += 1
        let code = String(match.1)
        #expect(documented.contains(code), "\(file): \(code)")
      }
    }
    #expect(count > 80)
  }

  /// The forms in which codes are written in the sources.
  private static var places: [(String, Regex<(Substring, Substring)>)] {
    let coded = /CodedText\(\s*"([a-z_]+)"/
    return [
      ("Sources/Lifecycle/Engine/Sentences.swift", /\(\s*"([a-z_]+)",/),
      ("Sources/Lifecycle/Explain/ObstacleSentences.swift", /Obstacle\(\s*"([a-z_]+)"/),
      ("Sources/Lifecycle/Explain/ExplanationVerdicts.swift", /code: "([a-z_]+)"/),
      ("Sources/Lifecycle/Explain/Explanation.swift", /Obstacle\(\s*"([a-z_]+)"/),
      ("Sources/Lifecycle/Explain/TrimState.swift", /Obstacle\(\s*"([a-z_]+)"/),
      ("Sources/Lifecycle/Ladder/TerminationRanking.swift", /Obstacle\(\s*"([a-z_]+)"/),
      (
        "Sources/Lifecycle/States/PossibleTransitions.swift",
        /Move\(\s*to: [a-zA-Z. ?:]+, code: "([a-z_]+)"/
      ),
      ("Sources/Daemon/ControlService/WorkerFacts.swift", coded),
      ("Sources/Daemon/External/Rules/AdoptionPreview.swift", coded),
      ("Sources/Daemon/ControlService/WorkerReporter.swift", coded),
      ("Sources/Daemon/ControlService/ExplanationReports.swift", coded),
      ("Sources/Daemon/State/JetsamKeeper.swift", coded),
      ("Sources/Daemon/Supervise/RestartSupervisor.swift", coded),
      ("Sources/Daemon/Sense/KernelKillWatch.swift", coded),
      ("Sources/Daemon/Worker/Sleep/WorkerMemory.swift", coded),
      ("Sources/Daemon/Worker/Sleep/WorkerSleep.swift", coded),
      ("Sources/Daemon/App/Daemon.swift", coded),
      ("Sources/dormouse/Commands/Inspection/JetsamCommand.swift", coded),
      ("Sources/Doctor/Doctor.swift", coded),
    ]
  }
}
