import Policy

// These types describe what the readers accept. The JSON Schema, the lists of keys in tests, and
// completions come from them, so that nothing is written twice.

/// The possible forms of a value.
indirect enum ValueShape {
  case any
  /// The value is missing, as in `key:`.
  case nothing
  /// Any scalar, as it is written.
  case text
  /// A scalar that matches a regular expression of ECMA 262, with an example.
  case matching(String, example: String)
  case keywords([String])
  case truth
  case whole(ClosedRange<Int>)
  /// A number with decimals, within bounds that a pattern can't express.
  case number(ClosedRange<Double>)
  case list(ValueShape)
  case mapping(MappingShape)
  /// A mapping from names that the operator chooses.
  case named(ValueShape, names: String)
  case either([ValueShape])
  /// The shape with a name for it in the documentation.
  case kind(String, ValueShape)
}

/// The keys of a mapping, in the order in which they are read.
final class MappingShape {
  private(set) var keys: [Entry] = []
  var required: [String] = []
  /// Words that may replace the whole mapping. Each is short for one of its keys.
  var shorthands: [String] = []

  struct Entry {
    var name: String
    var shape: ValueShape
    /// The description, as in `Key`.
    var about: String?
    var usual: String?
  }

  func add(_ key: String, _ shape: ValueShape, about: String? = nil, usual: String? = nil) {
    keys.append(Entry(name: key, shape: shape, about: about, usual: usual))
  }

  /// Returns the keys that have a value, by path. Sections aren't among them, nor what is inside a
  /// value that is replaced as a whole. A mapping that a word may replace is such a value.
  func values(under prefix: String = "") -> [String] {
    keys.flatMap { key in
      let path = prefix.isEmpty ? key.name : "\(prefix).\(key.name)"
      if case .mapping(let inner) = key.shape.bare { return inner.values(under: path) }
      return [path]
    }
  }

  subscript(path: String) -> ValueShape? {
    var shape: ValueShape = .mapping(self)
    for name in path.split(separator: ".") {
      guard let entry = shape.inner?.keys.first(where: { $0.name == name }) else { return nil }
      shape = entry.shape
    }
    return shape
  }
}

extension ValueShape {
  /// The mapping that this shape is or may be.
  var inner: MappingShape? {
    switch self {
    case .mapping(let shape): shape
    case .either(let shapes): shapes.lazy.compactMap(\.inner).first
    case .kind(_, let shape): shape.inner
    default: nil
    }
  }

  /// The shape without its name in the documentation.
  var bare: ValueShape { if case .kind(_, let shape) = self { shape.bare } else { self } }

  func called(_ kind: String) -> ValueShape { .kind(kind, self) }

  /// The shape, or a list of such values.
  var orList: ValueShape { .either([self, .list(self)]) }

  /// The kind of the value for the documentation: ``duration over 0, or `never` ``.
  var kind: String {
    switch self {
    case .kind(let kind, _): kind
    case .keywords(let keywords): keywords.map { "`\($0)`" }.joined(separator: ", ")
    case .truth: "truth value"
    case .whole(let range):
      range.upperBound == .max
        ? "whole number from \(range.lowerBound)"
        : "whole number, \(range.lowerBound) to \(range.upperBound)"
    case .list: "list"
    case .mapping, .named: "mapping"
    case .either(let shapes): shapes.map(\.kind).joined(separator: ", or ")
    case .any, .nothing, .text, .matching, .number: "text"
    }
  }
}

/// The shapes of all files.
enum KeyExplorer {
  /// The shape of a policy file, of its overrides for the machine, or of those for one worker.
  static func policy(_ scope: PolicyReader.Scope) -> MappingShape {
    MappingShape(PolicyKeys.all, in: scope)
  }

  /// The shape of `dormouse.yaml`.
  static func configuration() -> MappingShape {
    let shape = MappingShape()
    shape.add("policy", .text)
    shape.add("policy_overrides", .mapping(policy(.overrides)))
    shape.add(ConfigurationKeys.all)
    shape.add("workers", .named(.mapping(worker()), names: NameRule.pattern))
    shape.add("adopt", .list(.mapping(adoptionRule())))
    return shape
  }

  /// The shape of one entry of `adopt:`.
  static func adoptionRule() -> MappingShape {
    let shape = MappingShape(AdoptionKeys.changes + AdoptionKeys.rule)
    shape.add("rules", Converter.name("").shape)
    shape.add("policy", .mapping(policy(.worker)))
    return shape
  }

  /// The shape of one entry of `workers:`.
  static func worker() -> MappingShape {
    let shape = MappingShape(WorkerKeys.all)
    shape.required = ["command"]
    return shape
  }
}
