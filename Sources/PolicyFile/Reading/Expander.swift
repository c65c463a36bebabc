import YAML

/// Replaces `${VAR}`, `${VAR:-default}` and `${VAR:+text}` in values. The default and the text may
/// contain variables, too. `$$` means one `$`; any other `$` means itself.
struct Expander {
  /// The maximum number of nested defaults.
  static let maxDepth = 8

  var variables: [String: String]
  /// The owner of the variables, for messages: "which the daemon doesn't have".
  var owner = "the daemon"
  /// True for commands, where `$$` is a shell's: only `$${` means `${`.
  var leavesDollars = false

  func with(_ others: [String: String]) -> Expander {
    var copy = self
    copy.variables.merge(others) { $1 }
    return copy
  }

  func expand(_ text: String) -> Result<String, Problem> { expand(text, depth: 0) }

  private func expand(_ text: String, depth: Int) -> Result<String, Problem> {
    var result = ""
    var remainder = Substring(text)
    while let dollar = remainder.firstIndex(of: "$") {
      result += remainder[..<dollar]
      remainder = remainder[dollar...].dropFirst()
      if remainder.hasPrefix("$"), !leavesDollars || remainder.dropFirst().hasPrefix("{") {
        result += "$"
        remainder = remainder.dropFirst()
        // `$${` is `${` and no variable.
        if remainder.hasPrefix("{") {
          result += "{"
          remainder = remainder.dropFirst()
        }
      } else if remainder.hasPrefix("{") {
        let offset = text[..<dollar].unicodeScalars.count
        guard let end = Self.end(ofReference: remainder.dropFirst()) else {
          return .failure(
            Problem(
              message: "has `${` without its `}`", suggestion: "write `\(escape)` for a `\(sign)`",
              offset: offset))
        }
        switch value(of: remainder[..<end].dropFirst(), depth: depth) {
        case .success(let value): result += value
        case .failure(var problem):
          problem.offset = offset
          return .failure(problem)
        }
        remainder = remainder[end...].dropFirst()
      } else {
        result += "$"
      }
    }
    return .success(result + remainder)
  }

  private var sign: String { leavesDollars ? "${" : "$" }
  private var escape: String { leavesDollars ? "$${" : "$$" }

  /// Returns the index of the `}` that ends a reference. nil: there is none.
  static func end(ofReference remainder: Substring) -> Substring.Index? {
    var depth = 1
    var previous: Character?
    for index in remainder.indices {
      let character = remainder[index]
      if character == "}" {
        depth -= 1
        if depth == 0 { return index }
      } else if character == "{", previous == "$" {
        depth += 1
      }
      // The second `$` of `$$` begins nothing.
      previous = character == "$" && previous == "$" ? nil : character
    }
    return nil
  }

  private func value(of reference: Substring, depth: Int) -> Result<String, Problem> {
    let name = reference.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
    let remainder = reference.dropFirst(name.count)
    guard let first = name.first, !first.isNumber,
      remainder.isEmpty || remainder.hasPrefix(":-") || remainder.hasPrefix(":+"),
      depth < Self.maxDepth
    else {
      let shells = leavesDollars ? "; a shell's own are written `$${…}`" : ""
      return .problem(
        "can't read `${\(shortened(String(reference)))}`",
        suggestion: "write `${VAR}`, `${VAR:-default}` or `${VAR:+text}`\(shells)")
    }
    let value = variables[String(name)]
    if remainder.isEmpty {
      if let value { return .success(value) }
      return .problem(
        "needs the variable `\(shortened(String(name)))`, which \(owner) doesn't have",
        suggestion: "set it, or write `${\(shortened(String(name))):-default}`")
    }
    // The default replaces an empty value, too, as in a shell.
    let isSet = value?.isEmpty == false
    if remainder.hasPrefix(":-"), isSet, let value { return .success(value) }
    if remainder.hasPrefix(":+"), !isSet { return .success("") }
    return expand(String(remainder.dropFirst(2)), depth: depth + 1)
  }
}

extension MappingReader {
  /// Returns the node with its variables replaced. `nil`: that failed, and the error was reported.
  func expanded(_ node: YAMLNode, called name: String, by expander: Expander?) -> YAMLNode? {
    guard let expander, case .scalar(let scalar) = node, scalar.string.contains("$") else {
      return node
    }
    switch expander.expand(scalar.string) {
    case .success(let text):
      // The style is quoted: an empty value that comes from a variable is an empty text, and not
      // nothing.
      return .scalar(
        .init(text, tag: scalar.tag, style: .doubleQuoted, mark: scalar.mark))
    case .failure(let problem):
      sink.error(
        at: position(problem.offset, in: node),
        "`\(shortened(name))` \(problem.message ?? "can't be expanded")",
        suggestion: problem.suggestion)
      return nil
    }
  }

  /// Returns the position in the file of the scalar `offset` in a scalar's text. It is the position
  /// of the text's beginning if escapes or line ends make the result uncertain.
  func position(_ offset: Int?, in node: YAMLNode) -> Position? {
    guard let start = node.position, let offset, offset > 0, let text = node.scalar?.string else {
      return node.position
    }
    let quote: Unicode.Scalar? = sink.source.scalar(at: start)
    let shift = quote == "\"" || quote == "'" ? 1 : 0
    for (index, scalar) in text.unicodeScalars.prefix(offset).enumerated() {
      let scalarPosition = Position(line: start.line, column: start.column + shift + index)
      guard sink.source.scalar(at: scalarPosition) == scalar else { return start }
    }
    return Position(line: start.line, column: start.column + shift + offset)
  }
}
