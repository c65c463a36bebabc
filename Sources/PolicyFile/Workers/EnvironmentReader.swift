import YAML

/// Reads `environment:`. Values are texts, in which the daemon's environment is expanded.
struct EnvironmentReader {
  var reader: MappingReader

  func read() -> [String: String] {
    var result: [String: String] = [:]
    for name in reader.order {
      guard let node = reader.node(name) else { continue }
      if let problem = Self.problem(withName: name) {
        reader.sink.error(
          at: reader.position(ofKey: name), "`\(shortened(name))` \(problem)")
      }
      // `KEY:` without a value is the empty text here.
      if node.isEmpty {
        result[name] = ""
        continue
      }
      let converter = Converter.text("a text, a number, true or false")
      result[name] = reader.convert(node, called: name, as: converter)
    }
    return result
  }

  /// Returns an error for a name that no environment can have.
  static func problem(withName name: String) -> String? {
    name.isEmpty || name.unicodeScalars.contains { $0 == "=" || $0 == "\0" }
      ? "can't be a variable's name: empty, or with `=` or NUL in it" : nil
  }
}
