/// Reads a file of variables, as `env_file` names it, with `KEY=VALUE` in each line.
///
/// `#` begins a comment at the start of a line or after a blank. `export` before a key is skipped.
/// `'…'` keeps everything, `"…"` keeps all but `\"`, `\\`, `\$` and `\n`, and both may have several
/// lines. Nothing is expanded.
public enum EnvironmentFile {
  /// Reads the variables of a regular file of at most 1 MB. It doesn't wait for a FIFO's other end,
  /// but a file system may wait without limit.
  public static func read(_ path: String) -> ParseResult<[String: String]> {
    switch FileContents.read(path, isRegularOnly: true) {
    case .success(let text): parse(text, file: path)
    case .failure(let problem): ParseResult(value: nil, diagnostics: [problem])
    }
  }

  static func parse(_ text: String, file: String) -> ParseResult<[String: String]> {
    let sink = DiagnosticSink(source: SourceText(text: text, file: file))
    return sink.result(Dictionary(parse(text, sink)) { $1 })
  }

  /// Parses a text.
  ///
  /// - Returns: the variables in the order of the file. If several have one name, the last one
  ///   applies.
  static func parse(_ text: String, _ sink: DiagnosticSink) -> [(name: String, value: String)] {
    var result: [(String, String)] = []
    let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    var next = 0
    while next < lines.count {
      let (index, line) = (next, lines[next])
      next += 1
      var remainder = line.drop { $0.isWhitespace }
      guard let first = remainder.first, first != "#" else { continue }
      let position = Position(line: index + 1, column: line.count - remainder.count + 1)
      if remainder.hasPrefix("export "), let equals = remainder.firstIndex(of: "="),
        remainder.firstIndex(of: " ").map({ $0 < equals }) == true
      {
        remainder = remainder.dropFirst(7).drop { $0.isWhitespace }
      }
      guard let equals = remainder.firstIndex(of: "=") else {
        sink.error(at: position, "is not `KEY=VALUE`", suggestion: "comments begin with `#`")
        continue
      }
      let name = SectionedFile.trimmed(remainder[..<equals])
      guard !name.isEmpty, !name.contains("\0"), !name.contains(where: \.isWhitespace) else {
        sink.error(at: position, "`\(shortened(name))` can't be a variable's name")
        continue
      }
      let text = remainder[equals...].dropFirst().drop { $0.isWhitespace }
      switch value(text, in: lines, next: &next) {
      case .success(let value): result.append((name, value))
      case .failure(let problem):
        sink.error(at: position, "`\(shortened(name))` \(problem.message ?? "is wrong")")
      }
    }
    return result
  }

  /// Parses a value.
  ///
  /// - Parameter next: the index of the next line. It is moved behind a value of several lines.
  private static func value(
    _ text: Substring, in lines: [Substring], next: inout Int
  ) -> Result<String, Problem> {
    guard !text.contains("\0") else { return .problem("holds a NUL character") }
    guard let quote = text.first, quote == "\"" || quote == "'" else {
      // ` #` begins a comment.
      var before = text
      if let comment = text.firstRange(of: " #") { before = text[..<comment.lowerBound] }
      return .success(SectionedFile.trimmed(before))
    }
    var value = ""
    var escaped = false
    var remainder = text.dropFirst()
    for following in next...lines.count {
      while let character = remainder.popFirst() {
        if escaped {
          if character == "n" {
            value.append("\n")
          } else {
            if !"\"\\$".contains(character) { value.append("\\") }
            value.append(character)
          }
          escaped = false
        } else if character == "\\", quote == "\"" {
          escaped = true
        } else if character == quote {
          next = following
          return end(value, behind: remainder)
        } else {
          value.append(character)
        }
      }
      guard following < lines.count else { break }
      value += escaped ? "\\\n" : "\n"
      (escaped, remainder) = (false, lines[following])
    }
    return .problem("has a quote (\(quote)) without its end")
  }

  /// Returns a value whose quote has ended, or an error if more text follows.
  private static func end(_ value: String, behind remainder: Substring) -> Result<String, Problem> {
    let remainder = SectionedFile.trimmed(remainder)
    guard remainder.isEmpty || remainder.hasPrefix("#") else {
      return .problem("has text after its closing quote")
    }
    guard !value.contains("\0") else {
      return .problem("holds a NUL character")
    }
    return .success(value)
  }
}
