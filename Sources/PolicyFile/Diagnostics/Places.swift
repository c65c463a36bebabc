/// Where the keys of one policy, or one configuration, stand in a text, by path.
final class Places {
  /// Of values.
  private(set) var known: [String: Position] = [:]
  /// Of the keys themselves.
  private(set) var keys: [String: Position] = [:]
  private var sections: Set<String> = []

  func record(_ path: String, _ position: Position?, key: Position?) {
    known[path] = position
    keys[path] = key
  }

  func recordSection(_ path: String) { sections.insert(path) }

  subscript(path: String) -> Position? { known[path] }

  /// The keys that have a value, by path: no sections, and nothing inside a value, such as the
  /// conditions of a pressure level, which is replaced as a whole.
  var settings: [String: Position] {
    keys.filter { path, _ in
      !sections.contains(path) && Self.ancestors(of: path).allSatisfy { sections.contains($0) }
    }
  }

  /// `a.b.c` → `a.b`, `a`.
  static func ancestors(of path: String) -> [String] {
    var parts = path.split(separator: ".")
    var result: [String] = []
    while parts.count > 1 {
      parts.removeLast()
      result.append(parts.joined(separator: "."))
    }
    return result
  }
}
