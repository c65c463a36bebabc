import Yams

/// Reads one mapping by its known keys. Whoever reads asks for each key in turn and ends with
/// `finish()`, which reports the keys that nobody asked for; nothing stops at the first error.
final class MappingReader {
  let sink: DiagnosticSink
  /// Where values stand, by path (`hibernate.disk.budget`), for checks across keys.
  let places: Places
  /// For messages: ``in `hibernate.disk` ``; empty at the top of a file.
  let title: String
  /// Where the mapping itself begins.
  let own: Position?
  let path: String
  private let entries: [String: (key: Position?, value: Node)]
  private var asked: [String] = []

  /// Positions by path, shared by the readers of one policy.
  final class Places {
    private(set) var known: [String: Position] = [:]
    func note(_ path: String, _ position: Position?) { known[path] = position }
    subscript(path: String) -> Position? { known[path] }
  }

  init(
    _ mapping: Node.Mapping, title: String, path: String = "", renamed: [String: String],
    sink: DiagnosticSink, places: Places = Places()
  ) {
    self.sink = sink
    self.own = mapping.mark.map { Position(line: $0.line, column: $0.column) }
    self.title = title
    self.path = path
    self.places = places
    self.renamed = renamed
    var entries: [String: (key: Position?, value: Node)] = [:]
    var firsts: [String: Position] = [:]
    for (key, value) in mapping {
      guard let word = key.scalar?.string else {
        sink.error(at: key.position, "a key must be a word, not \(key.kind)")
        continue
      }
      if let original = renamed[word] {
        firsts[original] = firsts[original] ?? key.position
      } else if word == "<<" {
        sink.error(
          at: key.position, "merge keys (`<<`) aren't supported",
          suggestion: "write the keys out; an alias may stand for a whole value")
      } else {
        if let first = firsts[word] {
          sink.error(
            at: key.position,
            "`\(shortened(word))` stands twice; the first is in line \(first.line)")
        }
        entries[word] = (key.position, value)
        self.order.append(word)
      }
    }
    self.entries = entries
  }

  private let renamed: [String: String]
  /// Keys in the order of the text.
  private(set) var order: [String] = []

  func position(ofKey key: String) -> Position? { entries[key]?.key }

  /// The value of a known key, if it is there.
  func node(_ key: String) -> Node? {
    asked.append(key)
    guard let value = entries[key]?.value, untagged(value, called: key) else { return nil }
    places.note(path(of: key), value.position)
    return value
  }

  /// A tag (`!include file`) that were ignored would deceive.
  private func untagged(_ node: Node, called name: String) -> Bool {
    guard let tag = node.foreignTag else { return true }
    sink.error(
      at: node.position, "`\(shortened(name))` has a tag (`\(shortened(tag))`); none is known here",
      suggestion: "leave the tag out")
    return false
  }

  /// Reads a key if it is there and right; otherwise the target keeps what it has.
  func read<Value>(_ key: String, into target: inout Value, as converter: Converter<Value>) {
    if let value = read(key, as: converter) { target = value }
  }

  func read<Value>(_ key: String, as converter: Converter<Value>) -> Value? {
    guard let node = node(key) else { return nil }
    return convert(node, called: key, as: converter)
  }

  /// For values under a key that has been asked for.
  func convert<Value>(_ node: Node, called name: String, as converter: Converter<Value>) -> Value? {
    guard untagged(node, called: name) else { return nil }
    switch converter.convert(node) {
    case .success(let value):
      return value
    case .failure(let problem):
      let message =
        problem.message.map { "`\(shortened(name))` \($0)" }
        ?? "`\(shortened(name))` must be \(converter.expects), "
        + (node.isEmpty ? "and is empty" : "not \(node.kind)")
      sink.error(at: node.position, message, suggestion: problem.suggestion)
      return nil
    }
  }

  /// A mapping inside this one. An empty value is an empty mapping: all its keys may have been
  /// commented out.
  func section(_ key: String, _ body: (MappingReader) -> Void) {
    guard let node = node(key), let reader = reader(of: node, called: key) else { return }
    body(reader)
    reader.finish()
  }

  /// A reader for a mapping under `key`; reports anything else.
  func reader(of node: Node, called key: String, places: Places? = nil) -> MappingReader? {
    let mapping: Node.Mapping
    switch node {
    case .mapping(let found): mapping = found
    case _ where node.isEmpty: mapping = Node.Mapping([])
    default:
      sink.error(
        at: node.position,
        "`\(shortened(key))` must be a mapping of keys to values, not \(node.kind)")
      return nil
    }
    return MappingReader(
      mapping, title: title.isEmpty ? key : "\(title).\(key)",
      path: places == nil ? path(of: key) : "", renamed: renamed, sink: sink,
      places: places ?? self.places)
  }

  /// Reports every key that was never asked for.
  func finish() {
    for key in order where !asked.contains(key) {
      let place = title.isEmpty ? "" : " in `\(shortened(title))`"
      sink.error(
        at: entries[key]?.key, "unknown key `\(shortened(key))`\(place)",
        suggestion: didYouMean(key, among: asked) ?? "known here: \(asked.joined(separator: ", "))")
    }
  }

  func path(of key: String) -> String { path.isEmpty ? key : "\(path).\(key)" }
}

extension Node {
  /// A tag that was written, other than those of texts, mappings and lists.
  var foreignTag: String? {
    let name: Tag.Name = Tag.Name(rawValue: tag.description)
    return [.implicit, .nonSpecific, .str, .map, .seq].contains(name) ? nil : name.rawValue
  }

  /// A plain scalar without any text, as in `key:`.
  var isEmpty: Bool {
    guard case .scalar(let scalar) = self else { return false }
    return scalar.string.isEmpty && scalar.style == .plain
  }
}
