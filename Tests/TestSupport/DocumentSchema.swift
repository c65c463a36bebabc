import JSONLines

/// A JSON Schema of docs/schemas, applied more strictly than readers do: a key that it doesn't
/// describe is a problem, and so is a text that isn't among `examples`, which list codes and the
/// like completely. Of JSON Schema (2020-12) it knows the keywords that these files use, and
/// refuses every other.
public struct DocumentSchema {
  private let root: Node
  private static let directory = "docs/schemas"

  /// A schema and the file that its references start from.
  private struct Node {
    var schema: JSON
    var file: String
  }

  /// `name`: `ps`, or a part of a file, `common.json#/$defs/worker`.
  public init(_ name: String) throws {
    let reference = name.contains("#") ? name : "\(name).json#"
    root = try Self.node(at: reference, from: "")
  }

  /// The names of all schemas except the common part.
  public static func names() -> [String] {
    SourceTree.entries("\(SourceTree.root)/\(directory)")
      .filter { $0.hasSuffix(".json") && $0 != "common.json" }.map { String($0.dropLast(5)) }
      .sorted()
  }

  /// The problems of a document, one sentence each; empty: none.
  public func problems(of document: JSON) throws -> [String] {
    var problems: [String] = []
    try check(document, root, "$", &problems)
    return problems
  }

  /// A document with every key that the schema describes.
  public func sample() throws -> JSON { try sample(root) }

  /// Keys of the object at a path such as `workers.exits`, through arrays; empty for what is no
  /// object.
  public func keys(at path: [String] = []) throws -> Set<String> {
    var node = root
    for key in path {
      guard let next = try properties(of: try element(of: node))[key] else {
        throw TestFailure("no key \(key)")
      }
      node = next
    }
    return Set(try properties(of: try element(of: node)).keys)
  }

  /// Every value of `examples`, with the key that has it.
  public func examples() throws -> [(key: String, values: [String])] {
    var listed: [(String, [String])] = []
    try collect(root, "", &listed)
    return listed
  }

  /// The parts that have no description, or use an unknown keyword.
  public func flaws() throws -> [String] {
    var flaws: [String] = []
    try inspect(root, "$", &flaws)
    return flaws
  }

  // MARK: reading

  private static func node(at reference: String, from file: String) throws -> Node {
    let parts = reference.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
    let name = parts[0].isEmpty ? file : String(parts[0])
    var schema = try load(name)
    for key in (parts.count > 1 ? parts[1] : "").split(separator: "/") {
      guard let next = schema[String(key)] else { throw TestFailure("\(name): no \(reference)") }
      schema = next
    }
    return Node(schema: schema, file: name)
  }

  private static func load(_ name: String) throws -> JSON {
    let text = try SourceTree.text("\(directory)/\(name)")
    guard let json = JSON(Array(text.utf8)) else { throw TestFailure("\(name) isn't JSON") }
    return json
  }

  /// The node itself, and all nodes that it refers to.
  private func parts(of node: Node) throws -> [Node] {
    var parts = [node]
    if let reference = node.schema["$ref"]?.text {
      parts += try self.parts(of: try Self.node(at: reference, from: node.file))
    }
    for each in node.schema["allOf"]?.elements ?? [] {
      parts += try self.parts(of: Node(schema: each, file: node.file))
    }
    return parts
  }

  private func properties(of node: Node) throws -> [String: Node] {
    var properties: [String: Node] = [:]
    for component in try parts(of: node) {
      guard case .object(let members)? = component.schema["properties"] else { continue }
      for member in members {
        properties[member.name] = Node(schema: member.value, file: component.file)
      }
    }
    return properties
  }

  private func items(of node: Node) throws -> Node? {
    try parts(of: node).lazy.compactMap { component in
      component.schema["items"].map { Node(schema: $0, file: component.file) }
    }.first
  }

  private func element(of node: Node) throws -> Node {
    guard let items = try items(of: node) else { return node }
    return try element(of: items)
  }

  private func first(_ keyword: String, of node: Node) throws -> JSON? {
    try parts(of: node).lazy.compactMap { $0.schema[keyword] }.first
  }

  private func examples(of node: Node) throws -> [String] {
    (try first("examples", of: node)?.elements ?? []).compactMap(\.text)
  }

  // MARK: checking

  private func check(
    _ value: JSON, _ node: Node, _ path: String, _ problems: inout [String]
  ) throws {
    if let constant = try first("const", of: node) {
      if value != constant { problems.append("\(path) isn't \(constant)") }
      return
    }
    switch (try first("type", of: node)?.text, value) {
    case ("object", .object(let members)):
      try check(members, node, path, &problems)
    case ("array", .array(let values)):
      guard let items = try items(of: node) else { return }
      for (index, each) in values.enumerated() {
        try check(each, items, "\(path)[\(index)]", &problems)
      }
    case ("string", .string(let text)):
      let documented = try examples(of: node)
      if !documented.isEmpty, !documented.contains(text) {
        problems.append("\(path) is `\(text)`, which isn't documented")
      }
    case ("integer", .int), ("integer", .unsigned), ("boolean", .bool), ("number", .int),
      ("number", .unsigned), ("number", .double):
      break
    case (let type, _): problems.append("\(path) isn't of type \(type ?? "?")")
    }
  }

  private func check(
    _ members: [JSON.Member], _ node: Node, _ path: String, _ problems: inout [String]
  ) throws {
    let properties = try properties(of: node)
    for member in members {
      if let property = properties[member.name] {
        try check(member.value, property, "\(path).\(member.name)", &problems)
      } else {
        problems.append("\(path).\(member.name) isn't documented")
      }
    }
    for component in try parts(of: node) {
      for name in (component.schema["required"]?.elements ?? []).compactMap(\.text)
      where !members.contains(where: { $0.name == name }) {
        problems.append("\(path).\(name) is missing")
      }
    }
  }

  private func sample(_ node: Node) throws -> JSON {
    if let constant = try first("const", of: node) { return constant }
    switch try first("type", of: node)?.text {
    case "object":
      return .object(
        try properties(of: node).sorted { $0.key < $1.key }.map {
          JSON.Member($0.key, try sample($0.value))
        })
    case "array": return .array(try items(of: node).map { [try sample($0)] } ?? [])
    case "integer": return .int(7)
    case "number": return .double(1.5)
    case "boolean": return .bool(true)
    default: return .string(try examples(of: node).first ?? "a text")
    }
  }

  private func collect(
    _ node: Node, _ key: String, _ listed: inout [(String, [String])]
  ) throws {
    let values = try examples(of: node)
    if !values.isEmpty { listed.append((key, values)) }
    for (name, property) in try properties(of: node) { try collect(property, name, &listed) }
    if let items = try items(of: node) { try collect(items, key, &listed) }
  }

  private static let keywords: Set = [
    "$schema", "$ref", "$defs", "title", "description", "type", "properties", "required", "items",
    "allOf", "const", "examples",
  ]

  private func inspect(_ node: Node, _ path: String, _ flaws: inout [String]) throws {
    for component in try parts(of: node) {
      guard case .object(let members) = component.schema else {
        flaws.append("\(path) is no schema")
        continue
      }
      for member in members where !Self.keywords.contains(member.name) {
        flaws.append("\(path): the keyword \(member.name) isn't known")
      }
    }
    let properties = try properties(of: node)
    for (name, property) in properties {
      if (try first("description", of: property)?.text ?? "").isEmpty {
        flaws.append("\(path).\(name) has no description")
      }
      try inspect(property, "\(path).\(name)", &flaws)
    }
    for component in try parts(of: node) {
      for name in (component.schema["required"]?.elements ?? []).compactMap(\.text)
      where properties[name] == nil {
        flaws.append("\(path).\(name) is required, and isn't described")
      }
    }
    if let items = try items(of: node) { try inspect(items, "\(path)[]", &flaws) }
  }
}
