import Policy
import YAML

/// Reads `depends_on:`, a list of names or a mapping from names to conditions.
struct DependencyReader {
  var reader: MappingReader

  static var shape: ValueShape {
    let condition = Converter<Dependency.Condition>.choice.shape
    let details = MappingShape()
    details.add("condition", condition, about: "what has to be true of the worker")
    return .either([
      .list(.matching(NameRule.pattern, example: "db")),
      .named(.either([condition, .mapping(details), .nothing]), names: NameRule.pattern),
    ])
  }

  func read(_ key: String) -> [Dependency] {
    guard let node = reader.node(key) else { return [] }
    if case .sequence = node {
      let names = reader.list(key, of: .name("the name of a worker")) ?? []
      return reader.unique(names.map { ($0.value, $0.value, $0.node) }).map { Dependency($0) }
    }
    guard let inner = reader.reader(of: node, called: key) else { return [] }
    return inner.order.compactMap { name in
      guard let node = inner.node(name) else { return nil }
      var dependency = Dependency(name)
      if case .mapping = node, let details = inner.reader(of: node, called: name) {
        details.read("condition", into: &dependency.condition, as: .choice)
        details.finish()
      } else if !node.isEmpty {
        inner.convert(node, called: name, as: .choice).map { dependency.condition = $0 }
      }
      return dependency
    }
  }
}
