/// The positions of the keys of one policy, or one configuration, in a text, by path.
final class KeyPositions {
  /// The positions of the values.
  private(set) var values: [String: Position] = [:]
  /// The positions of the keys.
  private(set) var keys: [String: Position] = [:]
  private var sections: Set<String> = []

  func record(_ path: String, _ position: Position?, key: Position?) {
    values[path] = position
    keys[path] = key
  }

  func recordSection(_ path: String) { sections.insert(path) }

  subscript(path: String) -> Position? { values[path] }

  /// The keys that have a value, by path. Sections aren't among them, nor what is inside a value,
  /// such as the conditions of a pressure level, which is replaced as a whole.
  var settings: [String: Position] {
    keys.filter { path, _ in
      !sections.contains(path) && Self.ancestors(of: path).allSatisfy { sections.contains($0) }
    }
  }

  /// Returns the paths above a path: `a.b` and `a` for `a.b.c`.
  static func ancestors(of path: String) -> [String] {
    var components = path.split(separator: ".")
    var result: [String] = []
    while components.count > 1 {
      components.removeLast()
      result.append(components.joined(separator: "."))
    }
    return result
  }
}
