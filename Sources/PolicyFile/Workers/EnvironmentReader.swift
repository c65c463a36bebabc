import YAML

/// Reads `environment:`; values are texts, with variables of the daemon's environment expanded.
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
      // `KEY:` with nothing behind it is the empty text here.
      if node.isEmpty {
        result[name] = ""
        continue
      }
      let converter = Converter.text("a text, a number, true or false")
      result[name] = reader.convert(node, called: name, as: converter)
    }
    return result
  }

  /// What no environment could hold.
  static func problem(withName name: String) -> String? {
    name.isEmpty || name.unicodeScalars.contains { $0 == "=" || $0 == "\0" }
      ? "can't be a variable's name: empty, or with `=` or NUL in it" : nil
  }
}
