import YAML

/// Reads one mapping by its known keys. The caller asks for each key and ends with `finish()`,
/// which reports the keys that weren't asked for. An error doesn't stop the reading.
final class MappingReader {
  let sink: DiagnosticSink
  /// The positions of the values by path (`hibernate.disk.budget`), for checks across keys.
  let positions: KeyPositions
  /// The mapping's path in messages, such as `hibernate.disk`. It is empty at the top of a file.
  let title: String
  /// The position where the mapping itself begins.
  let start: Position?
  let path: String
  /// Replaces `${VAR}` in values. `nil`: a `$` is a `$`.
  let expander: Expander?
  /// The purpose of the text. Some keys of a policy are refused for one worker.
  var scope = PolicyReader.Scope.policy
  /// The directory to which paths are relative.
  var directory = "."
  /// Reads keys that are commands.
  var commands = CommandReader(variables: [:])
  private let entries: [String: (key: Position?, value: YAMLNode)]
  private var asked: [String] = []
  /// Keys that are known only to refuse them: names of other systems, keys of later versions.
  var refusedKeys: Set<String> = []
  private var taken: Set<String> = []
  /// The keys in the order of the text.
  private(set) var order: [String] = []

  init(
    _ mapping: YAMLNode.Mapping, title: String, path: String = "", sink: DiagnosticSink,
    positions: KeyPositions = KeyPositions(), expander: Expander? = nil
  ) {
    self.sink = sink
    self.start = mapping.mark.map { Position($0) }
    self.title = title
    self.path = path
    self.positions = positions
    self.expander = expander
    var entries: [String: (key: Position?, value: YAMLNode)] = [:]
    for (key, value) in mapping {
      guard let word = key.scalar?.string else {
        sink.error(at: key.position, "a key must be a word, not \(key.kind)")
        continue
      }
      if word == "<<" {
        sink.error(
          at: key.position, "merge keys (`<<`) aren't supported",
          suggestion: "write the keys out; an alias may stand for a whole value")
      } else if entries.updateValue((key.position, value), forKey: word) == nil {
        order.append(word)
      }
    }
    self.entries = entries
  }

  func position(ofKey key: String) -> Position? { entries[key]?.key }

  /// Returns the value of a known key, if the mapping has it.
  func node(_ key: String) -> YAMLNode? {
    asked.append(key)
    guard let entry = entries[key], untagged(entry.value, called: key) else { return nil }
    positions.record(path(of: key), entry.value.position, key: entry.key)
    return entry.value
  }

  /// Reports a tag such as `!include file`: to ignore it would be misleading.
  private func untagged(_ node: YAMLNode, called name: String) -> Bool {
    guard let tag = node.foreignTag else { return true }
    sink.error(
      at: node.position, "`\(shortened(name))` has a tag (`\(shortened(tag))`); none is known here",
      suggestion: "leave the tag out")
    return false
  }

  /// Reads a key if it is there and valid. Otherwise the target keeps its value.
  func read<Value>(_ key: String, into target: inout Value, as converter: Converter<Value>) {
    if let value = read(key, as: converter) { target = value }
  }

  func read<Value>(_ key: String, as converter: Converter<Value>) -> Value? {
    guard let node = node(key) else { return nil }
    return convert(node, called: key, as: converter)
  }

  /// Converts a value below a key that was asked for already.
  func convert<Value>(_ node: YAMLNode, called name: String, as converter: Converter<Value>)
    -> Value?
  {
    convert(node, called: name, as: converter, by: expander)
  }

  /// Converts a value.
  ///
  /// - Parameter expander: replaces the reader's own. `nil`: nothing is expanded.
  func convert<Value>(
    _ node: YAMLNode, called name: String, as converter: Converter<Value>, by expander: Expander?
  ) -> Value? {
    guard untagged(node, called: name) else { return nil }
    guard let node = expanded(node, called: name, by: expander) else { return nil }
    switch converter.convert(node) {
    case .success(let value):
      return value
    case .failure(let problem):
      report(problem, with: node, called: name, expects: converter.expects)
      return nil
    }
  }

  private func report(
    _ problem: Problem, with node: YAMLNode, called name: String, expects: String
  ) {
    let message =
      problem.message.map { "`\(shortened(name))` \($0)" }
      ?? "`\(shortened(name))` must be \(expects), "
      + (node.isEmpty ? "and is empty" : "not \(node.kind)")
    sink.error(
      at: position(problem.offset, in: node), message, suggestion: problem.suggestion)
  }

  /// Reads a mapping inside this one. An empty value is an empty mapping, because all its keys may
  /// have been commented out.
  ///
  /// - Parameter shorthands: each may replace the whole section, and is short for one of its keys.
  /// - Returns: the word, if there is one.
  @discardableResult func section(
    _ key: String, or shorthands: [(word: String, key: String)] = [],
    _ body: (MappingReader) -> Void
  ) -> String? {
    guard let node = node(key) else { return nil }
    if !shorthands.isEmpty, let text = node.scalar?.string, !node.isEmpty {
      guard let shorthand = shorthands.first(where: { $0.word == text }) else {
        let keywords = shorthands.map(\.word)
        sink.error(
          at: node.position,
          "`\(key)` must be a mapping of keys to values, \(listed(keywords)), not \(node.kind)",
          suggestion: didYouMean(text, among: keywords))
        return nil
      }
      positions.recordSection(path(of: key))
      positions.record(
        "\(path(of: key)).\(shorthand.key)", node.position, key: position(ofKey: key))
      return text
    }
    guard let reader = reader(of: node, called: key) else { return nil }
    positions.recordSection(path(of: key))
    body(reader)
    reader.finish()
    return nil
  }

  /// Returns a reader for a mapping below `key`. Anything else is reported.
  ///
  /// - Parameter variables: variables for `${VAR}`, which override those that are known already.
  func reader(
    of node: YAMLNode, called key: String, positions: KeyPositions? = nil,
    variables: [String: String] = [:]
  ) -> MappingReader? {
    let mapping: YAMLNode.Mapping
    switch node {
    case .mapping(let value): mapping = value
    case _ where node.isEmpty: mapping = YAMLNode.Mapping()
    default:
      sink.error(
        at: node.position,
        "`\(shortened(key))` must be a mapping of keys to values, not \(node.kind)")
      return nil
    }
    let reader = MappingReader(
      mapping, title: title.isEmpty ? key : "\(title).\(key)",
      path: positions == nil ? path(of: key) : "", sink: sink,
      positions: positions ?? self.positions,
      expander: expander?.with(variables))
    (reader.scope, reader.directory, reader.commands) = (scope, directory, commands)
    return reader
  }

  /// Returns the keys that no reader has asked for and whose mapping has this key. `finish` doesn't
  /// report them then.
  func claimUnknownKeys(holding key: String) -> [String] {
    let keys = order.filter {
      !asked.contains($0) && entries[$0]?.value.mapping?[key] != nil
    }
    taken.formUnion(keys)
    return keys
  }

  /// Reports every key that was never asked for.
  func finish() {
    // A key that is always refused isn't suggested.
    let valid = asked.filter { !refusedKeys.contains($0) }
    for key in order where !asked.contains(key) && !taken.contains(key) {
      let location = title.isEmpty ? "" : " in `\(shortened(title))`"
      sink.error(
        at: entries[key]?.key, "unknown key `\(shortened(key))`\(location)",
        suggestion: didYouMean(key, among: valid) ?? "known here: \(valid.joined(separator: ", "))")
    }
  }

  func path(of key: String) -> String { path.isEmpty ? key : "\(path).\(key)" }
}

extension YAMLNode {
  /// The tag that was written, except those of texts, mappings and lists.
  var foreignTag: String? {
    switch tag {
    case nil, "", "!", "tag:yaml.org,2002:str", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq":
      nil
    case let name?: name
    }
  }

  /// True for a plain scalar without any text, as in `key:`.
  var isEmpty: Bool {
    guard case .scalar(let scalar) = self else { return false }
    return scalar.string.isEmpty && scalar.style == .plain
  }
}
