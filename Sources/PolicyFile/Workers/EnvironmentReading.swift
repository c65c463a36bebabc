import YAML

extension MappingReader {
  /// Reads `environment:`. Values are texts, in which the daemon's environment is expanded.
  func variables() -> [String: String] {
    var result: [String: String] = [:]
    for name in order {
      guard let node = node(name) else { continue }
      if let problem = Self.problem(withVariable: name) {
        sink.error(at: position(ofKey: name), "`\(shortened(name))` \(problem)")
      }
      // `KEY:` without a value is the empty text here.
      let converter = Converter.text("a text, a number, true or false")
      result[name] = node.isEmpty ? "" : convert(node, called: name, as: converter)
    }
    return result
  }

  /// Returns an error for a name that no environment can have.
  static func problem(withVariable name: String) -> String? {
    name.isEmpty || name.unicodeScalars.contains { $0 == "=" || $0 == "\0" }
      ? "can't be a variable's name: empty, or with `=` or NUL in it" : nil
  }
}
