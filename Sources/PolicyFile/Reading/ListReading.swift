import YAML

extension MappingReader {
  /// Reads the valid items of a list. `nil`: the key is missing or no list. An item that is wrong
  /// is reported and left out.
  func list<Item>(
    _ key: String, of converter: Converter<Item>
  ) -> [(value: Item, node: YAMLNode)]? {
    guard let node = node(key) else { return nil }
    guard case .sequence(let sequence) = node else {
      let inBrackets = node.scalar.flatMap { $0.string.isEmpty ? nil : "write `[\($0.string)]`" }
      let isShort = inBrackets?.unicodeScalars.count ?? 0 <= 60
      sink.error(
        at: node.position,
        "`\(key)` must be a list in `[ ]`, "
          + (node.isEmpty ? "and is empty" : "not \(node.kind)"),
        suggestion: isShort ? inBrackets : "put it in `[ ]`")
      return nil
    }
    return sequence.compactMap { item in
      convert(item, called: key, as: converter).map { ($0, item) }
    }
  }

  /// Returns the values without repetitions, which are reported.
  func unique<Item: Hashable>(_ items: [(value: Item, text: String, node: YAMLNode)]) -> [Item] {
    var seen: Set<Item> = []
    return items.compactMap { item in
      guard seen.insert(item.value).inserted else {
        sink.error(at: item.node.position, "`\(item.text)` is given twice in this list")
        return nil
      }
      return item.value
    }
  }

  /// Marks a key as known and refused. Returns its position if the text has it.
  func refused(_ key: String) -> Position? {
    refusedKeys.insert(key)
    return node(key) == nil ? nil : position(ofKey: key)
  }
}
