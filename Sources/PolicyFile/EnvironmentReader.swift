import Yams

/// Reads `environment:`; values are texts, with variables of the daemon's environment expanded.
struct EnvironmentReader {
  var reader: MappingReader
  var outer: [String: String]

  func read() -> [String: String] {
    var result: [String: String] = [:]
    for name in reader.order {
      guard let node = reader.node(name) else { continue }
      if name.isEmpty || name.unicodeScalars.contains(where: { $0 == "=" || $0 == "\0" }) {
        reader.sink.error(
          at: reader.position(ofKey: name),
          "`\(shortened(name))` can't be a variable's name: empty, or with `=` or NUL in it")
      }
      // `KEY:` with nothing behind it is the empty text here.
      if node.isEmpty {
        result[name] = ""
        continue
      }
      let converter = Converter.text("a text, a number or a truth value")
      guard let text = reader.convert(node, called: name, as: converter) else { continue }
      result[name] = expand(text, called: name, at: node.position)
    }
    return result
  }

  private func expand(_ text: String, called name: String, at position: Position?) -> String? {
    switch Expansion.expand(text, from: outer) {
    case .success(let expanded):
      return expanded
    case .failure(let problem):
      reader.sink.error(
        at: position, "`\(shortened(name))` \(problem.message ?? "can't be expanded")",
        suggestion: problem.suggestion)
      return nil
    }
  }
}

/// `${VAR}` and `${VAR:-default}`. `$$` stands for one `$`; any other `$` for itself.
enum Expansion {
  static func expand(
    _ text: String, from environment: [String: String]
  ) -> Result<String, Problem> {
    var result = ""
    var rest = Substring(text)
    while let dollar = rest.firstIndex(of: "$") {
      result += rest[..<dollar]
      rest = rest[dollar...].dropFirst()
      if rest.hasPrefix("$") {
        result += "$"
        rest = rest.dropFirst()
      } else if rest.hasPrefix("{") {
        guard let end = rest.firstIndex(of: "}") else {
          return .failure(
            Problem(message: "has `${` without its `}`", suggestion: "write `$$` for a `$`"))
        }
        switch value(of: rest[..<end].dropFirst(), in: environment) {
        case .success(let value): result += value
        case .failure(let problem): return .failure(problem)
        }
        rest = rest[end...].dropFirst()
      } else {
        result += "$"
      }
    }
    return .success(result + rest)
  }

  private static func value(
    of reference: Substring, in environment: [String: String]
  ) -> Result<String, Problem> {
    let name = reference.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
    let rest = reference.dropFirst(name.count)
    guard let first = name.first, !first.isNumber, rest.isEmpty || rest.hasPrefix(":-") else {
      return .failure(
        Problem(
          message: "can't make sense of `${\(shortened(String(reference)))}`",
          suggestion: "write `${VAR}` or `${VAR:-default}`"))
    }
    let value = environment[String(name)]
    if rest.isEmpty {
      if let value { return .success(value) }
      return .failure(
        Problem(
          message: "needs the variable `\(shortened(String(name)))`, which the daemon doesn't have",
          suggestion: "set it, or write `${\(shortened(String(name))):-default}`"))
    }
    // As in a shell, the default stands for an empty value, too.
    if let value, !value.isEmpty { return .success(value) }
    return .success(String(rest.dropFirst(2)))
  }
}
