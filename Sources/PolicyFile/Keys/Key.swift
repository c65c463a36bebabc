import YAML

/// One key of a file, declared once: its name, the value that it sets, its converter, and its
/// meaning. The reader, the renderer, the JSON Schema, the differences, completion and the tables
/// of the documentation come from it.
struct Key<Root> {
  var name: String
  /// The description for the schema and the documentation, without a first capital and a last full
  /// stop.
  var about: String
  /// Makes the shape when it is needed, because this can take much longer than everything else.
  private let makeShape: () -> ValueShape
  var shape: ValueShape { kind.map(makeShape().called) ?? makeShape() }
  /// The name of the value's kind in the documentation, if the shape doesn't give it.
  var kind: String?
  /// The keys of a section. nil: the key is a value.
  var sectionKeys: [Key]?
  var holder = KeyHolder.any
  /// The meaning of a missing key, for the documentation. nil: a new `Root` has the value.
  var usual: String?
  var change = ChangeMeaning()
  /// True if a changed value applies at the next launch of the worker.
  var isAtLaunch = false
  var read: (MappingReader, inout Root) -> Void
  /// Returns the value to write. nil: there is none.
  var write: (Root) -> YAMLText?
  /// Copies the value from another `Root`.
  var copy: (_ other: Root, _ target: inout Root) -> Void

  /// Makes a key with a value. A key that is missing or wrong changes nothing.
  ///
  /// - Parameters:
  ///   - less: a sentence on what a smaller value means for workers. `more` is one on a larger
  ///     value.
  ///   - meanings: sentences on what a new value means, by value.
  ///   - neverIsSmallest: true if `never` is the smallest value, as of a maximum size. Otherwise it
  ///     is the largest, as of a maximum time.
  init<Value>(
    _ name: String, _ path: WritableKeyPath<Root, Value>, as converter: Converter<Value>,
    about: String, holder: KeyHolder = .any, usual: String? = nil, less: String? = nil,
    more: String? = nil, meanings: [String: String] = [:], neverIsSmallest: Bool = false
  ) {
    self.init(
      name, shape: converter.shape, about: about, holder: holder, usual: usual,
      read: { $0.read(name, into: &$1[keyPath: path], as: converter) },
      write: { converter.write($0[keyPath: path]) },
      copy: { $1[keyPath: path] = $0[keyPath: path] })
    change = ChangeMeaning(
      less: less, more: more, meanings: meanings, neverIsSmallest: neverIsSmallest)
  }

  /// Makes a key without a default: a missing key means nil.
  init<Value>(
    _ name: String, _ path: WritableKeyPath<Root, Value?>, as converter: Converter<Value>,
    about: String, usual: String? = "none"
  ) {
    self.init(
      name, shape: converter.shape, about: about, usual: usual,
      read: { reader, root in
        if let value = reader.read(name, as: converter) { root[keyPath: path] = value }
      },
      write: { $0[keyPath: path].map(converter.write) },
      copy: { $1[keyPath: path] = $0[keyPath: path] })
  }

  /// Makes a key with a list, which is replaced as a whole. Repetitions are removed.
  init<Item: Hashable>(
    _ name: String, _ path: WritableKeyPath<Root, [Item]>, listOf converter: Converter<Item>,
    about: String, holder: KeyHolder = .any,
    check: @escaping ([(value: Item, node: YAMLNode)], MappingReader) -> Void = { _, _ in }
  ) {
    self.init(
      name, shape: .list(converter.shape), about: about, holder: holder,
      read: { reader, root in
        guard let items = reader.list(name, of: converter) else { return }
        root[keyPath: path] = reader.unique(
          items.map { ($0.value, converter.write($0.value).flow, $0.node) })
        check(items, reader)
      },
      write: { .list($0[keyPath: path].map(converter.write)) },
      copy: { $1[keyPath: path] = $0[keyPath: path] })
  }

  /// Makes a key with a mapping that is replaced as a whole, or with a word that means nil.
  ///
  /// - Parameters:
  ///   - base: the value over which the mapping's keys are laid.
  ///   - check: reports contradictions between the keys.
  init<Value>(
    _ name: String, _ path: WritableKeyPath<Root, Value?>, or word: String, over base: Value,
    keys: [Key<Value>], about: String, meanings: [String: String] = [:],
    check: @escaping (MappingReader, Value) -> Void = { _, _ in }
  ) {
    self.init(
      name, shape: .either([.mapping(MappingShape(keys)), .keywords([word])]), about: about,
      read: { reader, root in
        guard let node = reader.node(name) else { return }
        if node.scalar?.string == word { return root[keyPath: path] = nil }
        guard let inner = reader.reader(of: node, called: name) else { return }
        var value = base
        keys.read(inner, into: &value)
        check(inner, value)
        inner.finish()
        root[keyPath: path] = value
      },
      write: { root in
        let pairs = root[keyPath: path].map { keys.pairs(of: $0) } ?? []
        return pairs.isEmpty ? .plain(word) : .mapping(pairs)
      },
      copy: { $1[keyPath: path] = $0[keyPath: path] })
    change.meanings = meanings
  }

  /// Makes a section: a mapping whose keys replace others one by one.
  ///
  /// - Parameters:
  ///   - shorthands: each may replace the whole section, and is short for one of its keys.
  ///   - check: reports contradictions between the keys.
  init(
    _ name: String, about: String, holder: KeyHolder = .any, shorthands: [Shorthand] = [],
    check: @escaping (MappingReader, inout Root) -> Void = { _, _ in },
    @KeyList<Root> sectionKeys: () -> [Key]
  ) {
    let sectionKeys = sectionKeys()
    self.init(
      name, shape: .mapping(MappingShape(sectionKeys, shorthands: shorthands.map(\.word))),
      about: about,
      holder: holder,
      read: { reader, root in
        let word = reader.section(name, or: shorthands.map { ($0.word, $0.key) }) { inner in
          sectionKeys.read(inner, into: &root)
          check(inner, &root)
        }
        shorthands.first { $0.word == word }?.apply(&root)
      },
      write: { root in
        let pairs = sectionKeys.pairs(of: root)
        return pairs.isEmpty ? nil : .mapping(pairs)
      },
      copy: { other, target in for key in sectionKeys { key.copy(other, &target) } })
    self.sectionKeys = sectionKeys
  }

  struct Shorthand {
    var word: String
    var key: String
    var apply: (inout Root) -> Void
  }

  /// Makes a key that none of the other initializers can describe.
  init(
    _ name: String, shape: @escaping @autoclosure () -> ValueShape, about: String,
    holder: KeyHolder = .any,
    usual: String? = nil, read: @escaping (MappingReader, inout Root) -> Void,
    write: @escaping (Root) -> YAMLText?,
    copy: @escaping (_ other: Root, _ target: inout Root) -> Void = { _, _ in }
  ) {
    (self.name, self.about, self.holder, makeShape) = (name, about, holder, shape)
    (self.usual, self.read, self.write, self.copy) = (usual, read, write, copy)
  }
}

/// The texts that may contain a key.
enum KeyHolder {
  case any
  /// The texts for the machine: the value applies to all workers together.
  case machine
  /// Policy files only. `refusal` follows the key in the error message.
  case file(refusal: String, suggestion: String? = nil)

  func refusal(in scope: PolicyReader.Scope) -> (message: String, suggestion: String?)? {
    switch (self, scope) {
    case (.any, _), (_, .policy), (.machine, .overrides): nil
    case (.machine, .worker):
      (
        "applies to all workers together and can't be set for one",
        "put it under `policy_overrides` at the top of the file"
      )
    case (.file(let refusal, let suggestion), _): (refusal, suggestion)
    }
  }
}

/// The meaning of a changed value for workers, as sentences.
struct ChangeMeaning {
  var less: String?
  var more: String?
  var meanings: [String: String] = [:]
  var neverIsSmallest = false
}

/// Keys in the order of the documentation. A builder is used because each key is then type-checked
/// separately: the compiler doesn't finish a long list of them.
@resultBuilder enum KeyList<Root> {
  static func buildExpression(_ key: Key<Root>) -> [Key<Root>] { [key] }
  static func buildExpression(_ keys: [Key<Root>]) -> [Key<Root>] { keys }
  static func buildBlock(_ keys: [Key<Root>]...) -> [Key<Root>] { keys.flatMap { $0 } }
}

extension Array {
  /// Reads each key that the text may contain, and refuses the others.
  func read<Root>(_ reader: MappingReader, into root: inout Root) where Element == Key<Root> {
    for key in self {
      guard let refusal = key.holder.refusal(in: reader.scope) else {
        key.read(reader, &root)
        continue
      }
      guard let position = reader.refused(key.name) else { continue }
      reader.sink.error(
        at: position, "`\(key.name)` \(refusal.message)", suggestion: refusal.suggestion)
    }
  }

  /// Copies the values that apply to all workers together from the machine's.
  func copyThoseOfMachine<Root>(from machine: Root, to root: inout Root)
  where Element == Key<Root> {
    for key in self {
      if case .machine = key.holder {
        key.copy(machine, &root)
      } else {
        key.sectionKeys?.copyThoseOfMachine(from: machine, to: &root)
      }
    }
  }

  func pairs<Root>(of root: Root) -> [(String, YAMLText)] where Element == Key<Root> {
    compactMap { key in key.write(root).map { (key.name, $0) } }
  }

  /// Returns each key with a value of its own, by path, in the order of the documentation.
  func leaves<Root>(under prefix: String = "") -> [(path: String, key: Key<Root>)]
  where Element == Key<Root> {
    flatMap { key in
      let path = prefix.isEmpty ? key.name : "\(prefix).\(key.name)"
      return key.sectionKeys?.leaves(under: path) ?? [(path, key)]
    }
  }
}

extension MappingShape {
  /// Makes the shape of a mapping with these keys.
  ///
  /// - Parameter scope: keys that aren't allowed there are left out.
  convenience init<Root>(
    _ keys: [Key<Root>], in scope: PolicyReader.Scope = .policy, shorthands: [String] = []
  ) {
    self.init()
    self.shorthands = shorthands
    add(keys, in: scope)
  }

  func add<Root>(_ keys: [Key<Root>], in scope: PolicyReader.Scope = .policy) {
    for key in keys where key.holder.refusal(in: scope) == nil {
      let shape = key.sectionKeys.map { sectionKeys -> ValueShape in
        let inner = MappingShape(
          sectionKeys, in: scope, shorthands: key.shape.inner?.shorthands ?? [])
        return key.kind.map(ValueShape.mapping(inner).called) ?? .mapping(inner)
      }
      add(key.name, shape ?? key.shape, about: key.about, usual: key.usual)
    }
  }
}
