// What the readers accept, as a value: the JSON Schema, the lists of keys in tests, and completions
// come from it. It is never written down twice. A reader that is *explored* gets no text; it notes
// each key that it is asked for together with what the key's converter takes.

/// What a value may look like.
indirect enum ValueShape {
  case any
  /// A key without a value.
  case nothing
  /// Any scalar, as it is written.
  case text
  /// A scalar of a form, as a regular expression of ECMA 262, with an example of it.
  case matching(String, example: String)
  case words([String])
  case truth
  case whole(ClosedRange<Int>)
  /// With decimals, within bounds that a pattern can't express.
  case number(ClosedRange<Double>)
  case list(ValueShape)
  case mapping(MappingShape)
  /// A mapping from names that people choose.
  case named(ValueShape, names: String)
  case either([ValueShape])
  /// The second, which the documentation calls the first.
  case kind(String, ValueShape)
}

/// The keys of a mapping, in the order in which they are asked for.
final class MappingShape {
  private(set) var keys: [Entry] = []
  var required: [String] = []
  /// Words that may stand for the whole mapping, and are short for one of its keys.
  var shorthands: [String] = []

  struct Entry {
    var name: String
    var shape: ValueShape
    /// See `Key`.
    var about: String?
    var usual: String?
  }

  /// What a key takes. Asked for twice, it takes either.
  func add(_ key: String, _ shape: ValueShape, about: String? = nil, usual: String? = nil) {
    guard let index = keys.firstIndex(where: { $0.name == key }) else {
      return keys.append(Entry(name: key, shape: shape, about: about, usual: usual))
    }
    switch (keys[index].shape, shape) {
    case (_, .any): break
    case (.any, _): keys[index].shape = shape
    case (.either(let shapes), _): keys[index].shape = .either(shapes + [shape])
    case (let other, _): keys[index].shape = .either([other, shape])
    }
  }

  /// Every key by its path: `hibernate`, `hibernate.disk`, `hibernate.disk.budget`.
  func paths(under prefix: String = "") -> [String] {
    keys.flatMap { key in
      let path = prefix.isEmpty ? key.name : "\(prefix).\(key.name)"
      return [path] + (key.shape.inner?.paths(under: path) ?? [])
    }
  }

  /// The keys that have a value, by path: no sections, and nothing inside a value that is replaced as a
  /// whole, which is what a mapping is that a word may stand for.
  func values(under prefix: String = "") -> [String] {
    keys.flatMap { key in
      let path = prefix.isEmpty ? key.name : "\(prefix).\(key.name)"
      if case .mapping(let inner) = key.shape.bare { return inner.values(under: path) }
      return [path]
    }
  }

  subscript(path: String) -> ValueShape? {
    var shape: ValueShape = .mapping(self)
    for part in path.split(separator: ".") {
      guard let found = shape.inner?.keys.first(where: { $0.name == part }) else { return nil }
      shape = found.shape
    }
    return shape
  }
}

extension ValueShape {
  /// The mapping that this is, or may be.
  var inner: MappingShape? {
    switch self {
    case .mapping(let shape): shape
    case .either(let shapes): shapes.lazy.compactMap(\.inner).first
    case .kind(_, let shape): shape.inner
    default: nil
    }
  }

  /// Without what the documentation calls it.
  var bare: ValueShape { if case .kind(_, let shape) = self { shape.bare } else { self } }

  func called(_ kind: String) -> ValueShape { .kind(kind, self) }

  /// For the documentation: ``duration over 0, or `never` ``.
  var kind: String {
    switch self {
    case .kind(let kind, _): kind
    case .words(let words): words.map { "`\($0)`" }.joined(separator: ", ")
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

/// The shapes of the files that there are.
enum KeyExplorer {
  /// A policy file, its overrides for the machine, or those of one worker.
  static func policy(_ scope: PolicyReader.Scope) -> MappingShape {
    MappingShape(PolicyKeys.all, in: scope)
  }

  /// `dormouse.yaml`.
  static func configuration() -> MappingShape {
    let shape = MappingShape()
    let reader = ConfigurationReader(
      directory: ".", library: .init(directories: []), environment: [:])
    _ = reader.read([MappingReader(exploring: shape)])
    return shape
  }

  /// One entry of `adopt:`.
  static func adoptionRule() -> MappingShape {
    let shape = MappingShape()
    let reader = AdoptionReader(library: .init(directories: []), policy: .init())
    _ = reader.entry(MappingReader(exploring: shape), number: 1)
    return shape
  }

  /// One entry of `workers:`.
  static func worker() -> MappingShape {
    let shape = MappingShape(WorkerKeys.all)
    shape.required = ["command"]
    return shape
  }
}
