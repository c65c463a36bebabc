import YAML

extension YAMLNode {
  /// Returns this node with each merge key of YAML 1.1 (`<<`), at any depth, replaced by the keys
  /// that it brings and that its mapping doesn't have itself.
  func withMergedKeys(_ sink: DiagnosticSink) -> YAMLNode {
    switch self {
    case .scalar: return self
    case .sequence(var sequence):
      sequence.items = sequence.items.map { $0.withMergedKeys(sink) }
      return .sequence(sequence)
    case .mapping(var mapping):
      let entries = mapping.entries.map { ($0.key, $0.value.withMergedKeys(sink)) }
      var names = Set(entries.compactMap { $0.0.scalar?.string })
      mapping.entries = entries.flatMap { key, value -> [YAMLNode.Mapping.Entry] in
        guard let scalar = key.scalar, scalar.string == "<<", scalar.style == .plain else {
          return [(key, value)]
        }
        let sources = value.sequence?.items ?? [value]
        return sources.flatMap { source -> [YAMLNode.Mapping.Entry] in
          guard let source = source.mapping else {
            sink.error(at: key.position, "`<<` needs a mapping, or a list of mappings")
            return []
          }
          return source.entries.filter { entry in
            entry.key.scalar.map { names.insert($0.string).inserted } ?? true
          }
        }
      }
      return .mapping(mapping)
    }
  }
}
