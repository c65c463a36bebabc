/// A file of variables, as `env_file` names it: `KEY=VALUE` in each line.
///
/// `#` begins a comment at the start of a line or after a blank; `export` before a key is passed over.
/// `'…'` keeps everything, `"…"` all but `\"`, `\\`, `\$` and `\n`; nothing is expanded.
public enum EnvironmentFile {
  /// Reads the variables of a regular file of at most 1 MB. It doesn't wait for a FIFO's other end, but a file
  /// system may wait without limit.
  public static func read(_ path: String) -> ParseResult<[String: String]> {
    switch FileContents.read(path, isRegularOnly: true) {
    case .success(let text): parse(text, file: path)
    case .failure(let problem): ParseResult(value: nil, diagnostics: [problem.diagnostic])
    }
  }

  static func parse(_ text: String, file: String) -> ParseResult<[String: String]> {
    let sink = DiagnosticSink(source: SourceText(text: text, file: file))
    return sink.result(Dictionary(parse(text, sink)) { $1 })
  }

  /// - Returns: the variables in the order of the file; the last of several with one name counts.
  private static func parse(_ text: String, _ sink: DiagnosticSink) -> [(
    name: String, value: String
  )] {
    var result: [(String, String)] = []
    let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    for (index, line) in lines.enumerated() {
      var rest = line.drop { $0.isWhitespace }
      guard let first = rest.first, first != "#" else { continue }
      let position = Position(line: index + 1, column: line.count - rest.count + 1)
      if rest.hasPrefix("export "), let equals = rest.firstIndex(of: "="),
        rest.firstIndex(of: " ").map({ $0 < equals }) == true
      {
        rest = rest.dropFirst(7).drop { $0.isWhitespace }
      }
      guard let equals = rest.firstIndex(of: "=") else {
        sink.error(at: position, "is not `KEY=VALUE`", suggestion: "comments begin with `#`")
        continue
      }
      let name = trimmed(rest[..<equals])
      guard !name.isEmpty, !name.contains("\0"), !name.contains(where: \.isWhitespace) else {
        sink.error(at: position, "`\(shortened(name))` can't be a variable's name")
        continue
      }
      switch value(trimmed(rest[equals...].dropFirst())) {
      case .success(let value): result.append((name, value))
      case .failure(let problem):
        sink.error(at: position, "`\(shortened(name))` \(problem.message ?? "is wrong")")
      }
    }
    return result
  }

  private static func trimmed(_ text: Substring) -> String {
    var text = text.drop { $0.isWhitespace }
    while text.last?.isWhitespace == true { text.removeLast() }
    return String(text)
  }

  private static func value(_ text: String) -> Result<String, Problem> {
    guard !text.contains("\0") else { return .failure(Problem(message: "holds a NUL character")) }
    guard let quote = text.first, quote == "\"" || quote == "'" else {
      // ` #` begins a comment.
      var before = Substring(text)
      if let comment = text.firstRange(of: " #") { before = text[..<comment.lowerBound] }
      return .success(trimmed(before))
    }
    var value = ""
    var escaped = false
    for (index, character) in zip(text.indices, text).dropFirst() {
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
        let rest = trimmed(text[index...].dropFirst())
        return rest.isEmpty || rest.hasPrefix("#")
          ? .success(value)
          : .failure(Problem(message: "has text after its closing quote"))
      } else {
        value.append(character)
      }
    }
    return .failure(Problem(message: "has a quote (\(quote)) without its end"))
  }
}
