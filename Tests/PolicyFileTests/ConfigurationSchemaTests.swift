import Policy
import Testing
import YAML

@testable import PolicyFile

@Suite struct `JSON Schemas` {
  private static func schema(_ kind: JSONSchema.Kind) throws -> YAMLNode {
    // Each JSON document is a YAML document, too.
    try #require(try YAMLDocument(parsing: JSONSchema.text(kind)).root)
  }

  private static func document(_ text: String) throws -> YAMLNode {
    try #require(try YAMLDocument(parsing: text).root)
  }

  @Test(arguments: shipped) func `The JSON Schema of policies accepts the shipped policies`(
    name: String
  ) throws {
    let text = try FileContents.read("\(shippedDirectory)/\(name).yaml").get()
    let validator = Validator(root: try Self.schema(.policy))
    #expect(validator.problems(try Self.document(text)) == [])
    let rendered = PolicyFile.render(try #require(library.load(name).value))
    #expect(validator.problems(try Self.document(rendered)) == [])
  }

  @Test func `The JSON Schema of configurations accepts complete configurations`() throws {
    let validator = Validator(root: try Self.schema(.configuration))
    let rules = `Rules of adoption in a configuration`.full
    for text in [
      `The daemon's configuration`.full, `Declared workers`.full, "workers:\n", rules,
    ] {
      #expect(validator.problems(try Self.document(text)) == [])
    }
  }

  static let wrong: [(JSONSchema.Kind, String, String)] = [
    (.policy, "hibernat: {}", "hibernat"),
    (.policy, "hibernate: { after: 10 sec }", "hibernate.after"),
    (.policy, "hibernate: { max_footprint: 16mb }", "hibernate.max_footprint"),
    (.policy, "hibernate: { order: [bnd] }", "hibernate.order.0"),
    (.policy, "terminate: { order: [bnd] }", "terminate"),
    (.policy, "terminate: nevr", "terminate"),
    (.policy, "foreground: { max: 0 }", "foreground.max"),
    (.policy, "mode: shado", "mode"), (.policy, "memory: [1]", "memory"),
    (.policy, "pressure: { warning: { stall: { som: 1% } } }", "pressure.warning"),
    (.configuration, "workers: { w: { importance: 1 } }", "workers.w"),
    (.configuration, "workers: { -w: { command: a } }", "workers.-w"),
    (.configuration, "workers: { w: { command: a, restart: sometimes } }", "workers.w.restart"),
    (.configuration, "workers: { w: { command: a, importance: 200 } }", "workers.w.importance"),
    (
      .configuration, "workers: { w: { command: a, policy: { ladder: {} } } }",
      "workers.w.policy.ladder"
    ),
  ]

  @Test(arguments: JSONSchema.Kind.allCases)
  func `Each JSON Schema finds the path of a wrong value`(kind: JSONSchema.Kind) throws {
    let validator = Validator(root: try Self.schema(kind))
    for (_, text, valuePath) in Self.wrong.filter({ $0.0 == kind }) {
      #expect(validator.problems(try Self.document(text)) == [valuePath], "\(text)")
    }
  }

  @Test func `The JSON Schema of configurations accepts a variable instead of any value`() throws {
    let validator = Validator(root: try Self.schema(.configuration))
    let text = "workers: { w: { command: a, importance: '${I:-5}', autostart: '${A}' } }"
    #expect(validator.problems(try Self.document(text)) == [])
  }

  /// A key that is added to the reader must be added to the renderer and the schema, too.
  @Test func `The policy file's reader and its renderer know the same keys`() {
    // A rendered policy has all values, so it extends no other one.
    let values = Set(KeyExplorer.policy(.policy).values()).subtracting(["extends"])
    #expect(values == Set(PolicyFile.values(of: LifecyclePolicy()).map(\.path)))
  }

  @Test(
    arguments: [
      (.policy, "counts as quiet. 0 to 100 %."),
      (.policy, "Zstd's level; of no effect on images of lz4. -7 to 19."),
      (.policy, "within the room of its state. 0 to 29."),
      (.policy, "The policy's name in reports. Default: the file's name without `.yaml`."),
      (.configuration, "by the next one. `64KB` to `1GB`. Default: `8MB`."),
      (.configuration, "many times `size`. 1 to 10000. Default: `8`."),
      (.configuration, "Permission bits that its new files don't get; with or without quotes."),
      (.configuration, "Default: `after-shortage`."),
      (.configuration, "see Users. Default: the daemon's."),
      (.configuration, "among workers in the same state. 0 to 100. Default: `0`."),
    ] as [(JSONSchema.Kind, String)])
  func `A description has the bounds and the default that the documentation has`(
    kind: JSONSchema.Kind, snippet: String
  ) {
    #expect(JSONSchema.text(kind).contains(snippet))
  }

  @Test(arguments: JSONSchema.Kind.allCases)
  func `Each key in a JSON Schema has a description`(kind: JSONSchema.Kind) throws {
    let paths = Self.undescribed(try Self.schema(kind), at: "")
    #expect(paths == [], "\(paths)")
  }

  /// Returns the paths of the keys without a description. The two keys of a header need none.
  private static func undescribed(_ schema: YAMLNode, at path: String) -> [String] {
    let inner = (schema["properties"]?.mapping).map(Array.init) ?? []
    let direct = inner.flatMap { key, value -> [String] in
      let valuePath = "\(path).\(key.string ?? "")"
      return (value["description"] == nil ? [valuePath] : []) + undescribed(value, at: valuePath)
    }
    let items = path.hasSuffix(".httpHeaders") ? nil : schema["items"]
    let others = (schema["anyOf"]?.array() ?? []) + [items, schema["additionalProperties"]]
    return direct + others.compactMap { $0 }.flatMap { undescribed($0, at: path) }
  }

  @Test func `Each key of policies and workers has a shape`() {
    for shape in [KeyExplorer.policy(.policy), KeyExplorer.worker()] {
      for path in shape.paths() {
        if case .any = shape[path] { Issue.record("`\(path)` has no shape") }
      }
    }
  }

  @Test func `Each description of a key belongs to a key that exists`() {
    let worker = Set(KeyExplorer.worker().paths().map { "workers.*.\($0)" })
    let top = Set(KeyExplorer.configuration().paths())
    let rule = Set(
      KeyExplorer.adoptionRule().paths().filter { !$0.hasPrefix("policy.") }.map { "adopt.\($0)" })
    let existing = worker.union(top).union(rule)
    #expect(Set(KeyDescriptions.configuration.keys).subtracting(existing).isEmpty)
  }
}

/// A validator for the part of JSON Schema that Dormouse's schemas use. The output of `policy
/// schema` is checked by hand with other validators.
private struct Validator {
  var root: YAMLNode

  /// Returns the paths of the values that a schema refuses.
  func problems(_ value: YAMLNode, _ schema: YAMLNode? = nil, at path: String = "") -> [String] {
    let schema = schema ?? root
    if schema["$ref"]?.string == "#/$defs/variable", let variable = root["$defs"]?["variable"] {
      return problems(value, variable, at: path)
    }
    var refused: [String] = []
    if let shapes = schema["anyOf"]?.array() {
      let all = shapes.map { problems(value, $0, at: path) }
      if !all.contains([]) { refused.append(path) }
    }
    if let type = schema["type"], !fits(value, type) { return [path] }
    if let allowed = schema["enum"]?.array(),
      !allowed.contains(where: { $0.string == value.string })
    {
      refused.append(path)
    }
    if let pattern = schema["pattern"]?.string, let text = value.string {
      if (try? Regex(pattern).firstMatch(in: text)) == nil { refused.append(path) }
    }
    if let minimum = schema["minimum"]?.float, let number = value.float, number < minimum {
      refused.append(path)
    }
    if let maximum = schema["maximum"]?.float, let number = value.float, number > maximum {
      refused.append(path)
    }
    if case .mapping(let mapping) = value { refused += keys(mapping, schema, at: path) }
    if case .sequence(let items) = value, let item = schema["items"] {
      refused += items.enumerated().flatMap { problems($1, item, at: "\(path).\($0)") }
    }
    return refused
  }

  private func keys(_ mapping: YAMLNode.Mapping, _ schema: YAMLNode, at path: String) -> [String] {
    var refused: [String] = []
    for (key, value) in mapping {
      let name = key.string ?? ""
      let valuePath = path.isEmpty ? name : "\(path).\(name)"
      if let pattern = schema["propertyNames"]?["pattern"]?.string,
        (try? Regex(pattern).firstMatch(in: name)) == nil
      {
        refused.append(valuePath)
      } else if let inner = schema["properties"]?[name] {
        refused += problems(value, inner, at: valuePath)
      } else if let others = schema["additionalProperties"] {
        refused += others.bool == false ? [valuePath] : problems(value, others, at: valuePath)
      }
    }
    let missing = schema["required"]?.array().contains { mapping[$0.string ?? ""] == nil } ?? false
    return missing ? refused + [path] : refused
  }

  private func fits(_ value: YAMLNode, _ type: YAMLNode) -> Bool {
    let types = type.string.map { [$0] } ?? type.array().compactMap(\.string)
    return types.contains { type in
      switch (type, value) {
      case ("object", .mapping), ("array", .sequence): true
      case ("null", .scalar): value.isNull
      case ("integer", .scalar): value.int != nil
      case ("number", .scalar): value.float != nil
      case ("boolean", .scalar): value.bool != nil
      case ("string", .scalar(let scalar)):
        scalar.style != .plain || !value.isNull && value.bool == nil && value.float == nil
      default: false
      }
    }
  }
}

/// Converts values as YAML's core schema does, as far as the schemas need it.
extension YAMLNode {
  fileprivate var string: String? { scalar?.string }
  fileprivate var int: Int? { string.flatMap { Int($0) } }
  fileprivate var float: Double? { string.flatMap { Double($0) } }
  fileprivate var bool: Bool? { string.flatMap { Bool($0) } }
  fileprivate var isNull: Bool {
    scalar.map { $0.style == .plain && ["", "~", "null"].contains($0.string) } ?? false
  }
  fileprivate func array() -> [YAMLNode] { sequence.map(Array.init) ?? [] }
  fileprivate subscript(key: String) -> YAMLNode? { mapping?[key] }
}
