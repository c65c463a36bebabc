import JSONLines
import Policy

/// Makes JSON Schemas (2020-12) of the files from the keys that their readers accept, for editors
/// that complete and check YAML. Only `policy check` finds contradictions between keys.
public enum JSONSchema {
  public enum Kind: String, Hashable, Sendable, CaseIterable { case policy, configuration }

  /// Returns the schema as the text of a JSON file.
  public static func text(_ kind: Kind) -> String {
    let shape: MappingShape
    switch kind {
    case .policy: shape = KeyExplorer.policy(.policy)
    case .configuration: shape = KeyExplorer.configuration()
    }
    return SchemaWriter(kind: kind).document(shape).indented() + "\n"
  }
}

private struct SchemaWriter {
  var kind: JSONSchema.Kind

  func document(_ shape: MappingShape) -> JSON {
    let title = kind == .policy ? "A policy of Dormouse" : "dormouse.yaml"
    var pairs: [(String, JSON)] = [
      ("$schema", .string("https://json-schema.org/draft/2020-12/schema")),
      ("$id", .string("urn:dormouse:schema:\(kind.rawValue)")),
      ("title", .string(title)),
    ]
    if kind == .configuration {
      // Any value of a configuration may come from the environment.
      let variable: JSON = .members([
        ("description", .string("${VAR} or ${VAR:-default}")), ("type", .string("string")),
        ("pattern", .string(#"\$\{"#)),
      ])
      pairs.append(("$defs", .members([("variable", variable)])))
    }
    return .members(pairs + mapping(shape, at: ""))
  }

  private func mapping(_ shape: MappingShape, at path: String) -> [(String, JSON)] {
    let properties = shape.keys.map { key in
      let path = path.isEmpty ? key.name : "\(path).\(key.name)"
      return (key.name, JSON.members(described(key, at: path)))
    }
    var pairs: [(String, JSON)] = [
      // A section whose keys have all been commented out is null.
      ("type", shape.required.isEmpty ? .strings(["object", "null"]) : .string("object")),
      ("properties", .members(properties)),
      ("additionalProperties", .bool(false)),
    ]
    if !shape.required.isEmpty {
      pairs.append(("required", .strings(shape.required)))
    }
    return pairs
  }

  private func described(
    _ key: MappingShape.Entry, at path: String
  ) -> [(String, JSON)] {
    var pairs = self.shape(key.shape, at: path)
    if let text = key.sentence(usual: Self.usual[path]) ?? KeyDescriptions.configuration[path] {
      pairs.insert(("description", .string(text)), at: 0)
    }
    if kind == .policy, let value = Self.defaults[path] { pairs.append(("default", value)) }
    return pairs
  }

  private func shape(_ shape: ValueShape, at path: String) -> [(String, JSON)] {
    switch shape {
    case .any: []
    case .nothing: [("type", .string("null"))]
    case .text: [("type", .strings(["string", "number", "boolean"]))]
    case .list(let item):
      [("type", .string("array")), ("items", .members(self.shape(item, at: path)))]
    case .mapping(let keys) where keys.shorthands.isEmpty: mapping(keys, at: path)
    case .mapping(let keys):
      [anyOf([mapping(keys, at: path), [("enum", .strings(keys.shorthands))]])]
    case .named(let value, let names): named(value, names, at: path)
    case .kind(_, let shape): self.shape(shape, at: path)
    case .either(let shapes):
      [anyOf(shapes.map { self.shape($0, at: path) })]
    default: expandable(scalar(shape))
    }
  }

  private func named(
    _ value: ValueShape, _ names: String, at path: String
  ) -> [(String, JSON)] {
    [
      ("type", .strings(["object", "null"])),
      ("propertyNames", .members([("pattern", .string(names))])),
      ("additionalProperties", .members(shape(value, at: "\(path).*"))),
    ]
  }

  private func scalar(_ shape: ValueShape) -> [(String, JSON)] {
    switch shape {
    case .matching(let pattern, let example):
      return [
        ("type", .string("string")), ("pattern", .string(pattern)),
        ("examples", .array([.string(example)])),
      ]
    case .keywords(let keywords): return [("enum", .strings(keywords))]
    case .truth: return [("type", .string("boolean"))]
    case .number(let range):
      return [
        ("type", .string("number")), ("minimum", .bound(range.lowerBound)),
        ("maximum", .bound(range.upperBound)),
      ]
    case .whole(let range):
      let bounds: [(String, JSON)] = [
        ("type", .string("integer")), ("minimum", .int(Int64(range.lowerBound))),
      ]
      return range.upperBound == .max
        ? bounds : bounds + [("maximum", .int(Int64(range.upperBound)))]
    default: return []
    }
  }

  private func expandable(_ scalar: [(String, JSON)]) -> [(String, JSON)] {
    guard kind == .configuration else { return scalar }
    return [anyOf([scalar, [("$ref", .string("#/$defs/variable"))]])]
  }

  private func anyOf(_ schemas: [[(String, JSON)]]) -> (String, JSON) {
    ("anyOf", .array(schemas.map { .members($0) }))
  }

  /// The meanings of missing keys of a configuration, as its file would have them.
  private static let usual: [String: String] = {
    let worker = WorkerKeys.all.pairs(of: WorkerConfiguration(name: "w", command: []))
    let journal = JournalConfiguration.keys.pairs(of: JournalConfiguration())
    let all =
      worker.map { ("workers.*.\($0)", $1) } + journal.map { ("journal.\($0)", $1) }
    return Dictionary(
      all.compactMap { path, value in value.nonEmpty.map { (path, "`\($0.flow)`") } }
    ) { $1 }
  }()

  /// The defaults that are scalars. Editors offer them as they are.
  private static let defaults: [String: JSON] = {
    let values = PolicyFile.values(of: LifecyclePolicy()).filter {
      $0.path != "name" && !$0.text.hasPrefix("[") && !$0.text.hasPrefix("{")
    }
    return Dictionary(
      uniqueKeysWithValues: values.map { value in
        let text = value.text
        let json: JSON =
          text == "true" || text == "false"
          ? .bool(text == "true") : Int64(text).map(JSON.int) ?? .string(text)
        return (value.path, json)
      })
  }()
}

extension JSON {
  fileprivate static func members(_ pairs: [(String, JSON)]) -> JSON {
    .object(pairs.map { Member($0, $1) })
  }

  fileprivate static func strings(_ texts: [String]) -> JSON { .array(texts.map { .string($0) }) }

  /// Makes a number, without a fraction if it is whole.
  fileprivate static func bound(_ value: Double) -> JSON {
    value == value.rounded() ? .int(Int64(value)) : .double(value)
  }
}

extension MappingShape.Entry {
  /// The description without links, which editors wouldn't follow, and with the bounds, which a
  /// pattern can't express.
  fileprivate func sentence(usual value: String?) -> String? {
    guard let about else { return nil }
    var text = about.prefix(1).uppercased() + about.dropFirst() + "."
    let kind = shape.kind
    if kind.contains("over 0") {
      text += " Over 0."
    } else if kind == "percentage" {
      text += " 0 to 100 %."
    } else if let bounds = kind.firstMatch(of: #/`?-?[0-9]+[A-Z]* *`? to `?[0-9]+[A-Z]*`?/#)?
      .output,
      !text.contains(bounds)
    {
      text += " \(bounds)."
    }
    if let value = usual ?? value, !["none", "required"].contains(value), !text.contains("Default:")
    {
      text += " Default: \(value)."
    }
    return text.replacing(#/\[([^\]]*)\]\([^)]*\)/#) { String($0.1) }
  }
}
