/// The positions of the keys of one policy, or one configuration, in a text, by path.
final class Places {
  /// The positions of the values.
  private(set) var known: [String: Position] = [:]
  /// The positions of the keys.
  private(set) var keys: [String: Position] = [:]
  private var sections: Set<String> = []

  func record(_ path: String, _ position: Position?, key: Position?) {
    known[path] = position
    keys[path] = key
  }

  func recordSection(_ path: String) { sections.insert(path) }

  subscript(path: String) -> Position? { known[path] }

  /// The keys that have a value, by path. Sections aren't among them, nor what is inside a value,
  /// such as the conditions of a pressure level, which is replaced as a whole.
  var settings: [String: Position] {
    keys.filter { path, _ in
      !sections.contains(path) && Self.ancestors(of: path).allSatisfy { sections.contains($0) }
    }
  }

  /// Returns the paths above a path: `a.b` and `a` for `a.b.c`.
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
