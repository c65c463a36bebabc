import Policy
import YAML

/// One key of a file, declared once: its name, where its value is, what it takes, and what it means. The reader, the
/// renderer, the JSON Schema, the differences, completion and the tables of the documentation come from it.
struct Key<Root> {
  var name: String
  /// For the schema and the documentation; without a first capital and a last full stop.
  var about: String
  /// When it is asked for: it can take much longer than all else.
  private let makeShape: () -> ValueShape
  var shape: ValueShape { kind.map(makeShape().called) ?? makeShape() }
  /// What the documentation calls its value, if the shape doesn't say it.
  var kind: String?
  /// Of a section.
  var parts: [Key]?
  var holder = KeyHolder.any
  /// For the documentation: what a missing key means, if it isn't the value that a new `Root` has.
  var usual: String?
  var change = ChangeMeaning()
  /// A changed value applies when the worker is started next.
  var isAtLaunch = false
  var read: (MappingReader, inout Root) -> Void
  /// nil: there is nothing to write.
  var write: (Root) -> YAMLText?
  /// Takes the value from another one.
  var copy: (_ other: Root, _ own: inout Root) -> Void

  /// A value. A key that is missing or wrong changes nothing.
  ///
  /// - Parameters:
  ///   - less: what a smaller value means for workers, as a sentence; `more` a larger one.
  ///   - words: what a new value means.
  ///   - neverIsLeast: of a longest time `never` is the most, of a largest size the least.
  init<Value>(
    _ name: String, _ path: WritableKeyPath<Root, Value>, as converter: Converter<Value>,
    about: String, holder: KeyHolder = .any, usual: String? = nil, less: String? = nil,
    more: String? = nil, words: [String: String] = [:], neverIsLeast: Bool = false
  ) {
    self.init(
      name, shape: converter.shape, about: about, holder: holder, usual: usual,
      read: { $0.read(name, into: &$1[keyPath: path], as: converter) },
      write: { converter.write($0[keyPath: path]) },
      copy: { $1[keyPath: path] = $0[keyPath: path] })
    change = ChangeMeaning(less: less, more: more, words: words, neverIsLeast: neverIsLeast)
  }

  /// A value without a default: no key, no value.
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

  /// A list, which is replaced as a whole, without repetitions.
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

  /// A mapping that is replaced as a whole, or a word for none.
  ///
  /// - Parameters:
  ///   - base: the value that the mapping's keys are laid over.
  ///   - check: finds what is wrong between the keys.
  init<Value>(
    _ name: String, _ path: WritableKeyPath<Root, Value?>, or word: String, over base: Value,
    keys: [Key<Value>], about: String, words: [String: String] = [:],
    check: @escaping (MappingReader, Value) -> Void = { _, _ in }
  ) {
    self.init(
      name, shape: .either([.mapping(MappingShape(keys)), .words([word])]), about: about,
      read: { reader, root in
        switch reader.mapping(name, or: word) {
        case nil: break
        case .word: root[keyPath: path] = nil
        case .mapping(let inner):
          var value = base
          keys.read(inner, into: &value)
          check(inner, value)
          inner.finish()
          root[keyPath: path] = value
        }
      },
      write: { root in
        let pairs = root[keyPath: path].map { keys.pairs(of: $0) } ?? []
        return pairs.isEmpty ? .plain(word) : .mapping(pairs)
      },
      copy: { $1[keyPath: path] = $0[keyPath: path] })
    change.words = words
  }

  /// A mapping whose keys replace others one by one.
  ///
  /// - Parameters:
  ///   - words: each may stand for the whole section, and is short for one of its keys.
  ///   - check: finds what is wrong between the keys.
  init(
    _ name: String, about: String, holder: KeyHolder = .any, words: [Shorthand] = [],
    check: @escaping (MappingReader, inout Root) -> Void = { _, _ in },
    @KeyList<Root> parts: () -> [Key]
  ) {
    let parts = parts()
    self.init(
      name, shape: .mapping(MappingShape(parts, shorthands: words.map(\.word))), about: about,
      holder: holder,
      read: { reader, root in
        let word = reader.section(name, or: words.map { ($0.word, $0.key) }) { inner in
          parts.read(inner, into: &root)
          check(inner, &root)
        }
        words.first { $0.word == word }?.apply(&root)
      },
      write: { root in
        let pairs = parts.pairs(of: root)
        return pairs.isEmpty ? nil : .mapping(pairs)
      },
      copy: { other, own in for part in parts { part.copy(other, &own) } })
    self.parts = parts
  }

  struct Shorthand {
    var word: String
    var key: String
    var apply: (inout Root) -> Void
  }

  /// A key that is like no other.
  init(
    _ name: String, shape: @escaping @autoclosure () -> ValueShape, about: String,
    holder: KeyHolder = .any,
    usual: String? = nil, read: @escaping (MappingReader, inout Root) -> Void,
    write: @escaping (Root) -> YAMLText?,
    copy: @escaping (_ other: Root, _ own: inout Root) -> Void = { _, _ in }
  ) {
    (self.name, self.about, self.holder, makeShape) = (name, about, holder, shape)
    (self.usual, self.read, self.write, self.copy) = (usual, read, write, copy)
  }
}

/// Which texts may hold a key.
enum KeyHolder {
  case any
  /// Those for the machine: the value applies to all workers together.
  case machine
  /// Policy files only. The words follow the key.
  case file(refusal: String, suggestion: String? = nil)
}

/// What a changed value means for workers, as a sentence.
struct ChangeMeaning {
  var less: String?
  var more: String?
  var words: [String: String] = [:]
  var neverIsLeast = false
}

/// Keys in the order of the documentation. A builder, because each of them is then checked by itself: the compiler
/// doesn't finish a long list of them.
@resultBuilder enum KeyList<Root> {
  static func buildExpression(_ key: Key<Root>) -> [Key<Root>] { [key] }
  static func buildExpression(_ keys: [Key<Root>]) -> [Key<Root>] { keys }
  static func buildBlock(_ keys: [Key<Root>]...) -> [Key<Root>] { keys.flatMap { $0 } }
}

extension Array {
  /// Reads each key that the text may hold, and refuses the others.
  func read<Root>(_ reader: MappingReader, into root: inout Root) where Element == Key<Root> {
    if let shape = reader.shape {
      for key in self { shape.add(key.name, key.shape, about: key.about, usual: key.usual) }
      return
    }
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

  /// Takes the values that apply to all workers together from the machine's.
  func copyThoseOfMachine<Root>(from machine: Root, to root: inout Root)
  where Element == Key<Root> {
    for key in self {
      if case .machine = key.holder {
        key.copy(machine, &root)
      } else {
        key.parts?.copyThoseOfMachine(from: machine, to: &root)
      }
    }
  }

  func pairs<Root>(of root: Root) -> [(String, YAMLText)] where Element == Key<Root> {
    compactMap { key in key.write(root).map { (key.name, $0) } }
  }

  /// Each key with a value of its own, by path, in the order of the documentation.
  func leaves<Root>(under prefix: String = "") -> [(path: String, key: Key<Root>)]
  where Element == Key<Root> {
    flatMap { key in
      let path = prefix.isEmpty ? key.name : "\(prefix).\(key.name)"
      return key.parts?.leaves(under: path) ?? [(path, key)]
    }
  }
}

extension KeyHolder {
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

extension MappingShape {
  /// - Parameter scope: keys that aren't allowed there are left out.
  convenience init<Root>(
    _ keys: [Key<Root>], in scope: PolicyReader.Scope = .policy, shorthands: [String] = []
  ) {
    self.init()
    self.shorthands = shorthands
    for key in keys where key.holder.refusal(in: scope) == nil {
      let shape = key.parts.map { parts -> ValueShape in
        let inner = MappingShape(
          parts, in: scope, shorthands: key.shape.inner?.shorthands ?? [])
        return key.kind.map(ValueShape.mapping(inner).called) ?? .mapping(inner)
      }
      add(key.name, shape ?? key.shape, about: key.about, usual: key.usual)
    }
  }
}
