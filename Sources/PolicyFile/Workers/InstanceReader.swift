import Policy
import YAML

/// Reads `instances:` and `replicas:`, by which one entry of `workers:` declares several workers.
struct InstanceReader {
  var reader: MappingReader

  struct Instance {
    /// The text that follows the entry's name and a hyphen in the worker's name.
    var name: String
    /// Variables for `${VAR}` in the entry, and for the worker's environment.
    var variables: [String: String]
  }

  /// The maximum number of workers of one entry.
  static let limit = 1000
  /// The variable that contains the instance's name.
  static let variable = "INSTANCE"

  static var shape: ValueShape {
    .either([
      .list(.matching(NameRule.pattern, example: "alice")),
      .named(
        .either([.named(.either([.text, .nothing]), names: "^[^=]+$"), .nothing]),
        names: NameRule.pattern),
    ])
  }

  /// Returns nil if there is neither key, so that the entry is one worker.
  func read() -> [Instance]? {
    let keys = ["instances", "replicas"].filter { reader.position(ofKey: $0) != nil }
    if keys.count == 2 {
      reader.sink.error(
        at: reader.position(ofKey: "replicas"), "`replicas` and `instances` are both there",
        suggestion: "leave one of them out")
    }
    switch keys.first {
    case "instances": return instances()
    case "replicas":
      let count = reader.read("replicas", as: .integer(0...Self.limit)) ?? 0
      return count == 0 ? [] : (1...count).map { instance("\($0)") }
    default: return nil
    }
  }

  private func instances() -> [Instance] {
    let key = "instances"
    guard let node = reader.node(key) else { return [] }
    if case .sequence = node {
      let names = reader.list(key, of: .name("an instance's name")) ?? []
      return reader.unique(names.map { ($0.value, $0.value, $0.node) }).map { instance($0) }
    }
    guard let inner = reader.reader(of: node, called: key) else { return [] }
    return inner.order.compactMap { name in
      guard let node = inner.node(name) else { return nil }
      guard reader.sink.allows(name, of: "an instance", at: inner.position(ofKey: name)),
        let variables = inner.reader(of: node, called: name)
      else { return nil }
      return instance(name, variables.variables())
    }
  }

  private func instance(_ name: String, _ variables: [String: String] = [:]) -> Instance {
    Instance(name: name, variables: [Self.variable: name].merging(variables) { $1 })
  }
}
