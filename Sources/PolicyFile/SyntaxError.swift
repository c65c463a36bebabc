import Yams

extension DiagnosticSink {
  /// What Yams throws, as one of our own diagnostics.
  func report(_ thrown: any Error) {
    guard let problem = thrown as? YamlError else {
      return error(at: nil, "can't be read as YAML: \(thrown)")
    }
    switch problem {
    case .scanner(let context, let text, let mark, _),
      .parser(let context, let text, let mark, _),
      .composer(let context, let text, let mark, _):
      let position = source.clamped(Position(line: mark.line, column: mark.column))
      error(
        at: position, "syntax: " + Self.sentence(context?.text, text),
        suggestion: hint(for: text, at: position) ?? Self.beginning(context, before: position))
    case .reader(let text, let offset, _, _):
      error(at: offset.map(source.position(ofCharacter:)), "syntax: \(text)")
    case .duplicatedKeysInMapping(_, let context):
      error(
        at: Position(line: context.mark.line, column: context.mark.column),
        "this key stands more than once in its mapping")
    default:
      error(at: nil, "can't be read as YAML: \(problem)")
    }
  }

  private static func sentence(_ context: String?, _ problem: String) -> String {
    guard let context, !context.isEmpty else { return problem }
    return "\(context), \(problem)"
  }

  /// An unclosed bracket or quote is noticed far behind it.
  private static func beginning(_ context: YamlError.Context?, before end: Position) -> String? {
    guard let context else { return nil }
    let begin = Position(line: context.mark.line, column: context.mark.column)
    return begin < end ? "it begins in line \(begin.line), column \(begin.column)" : nil
  }

  private func hint(for problem: String, at position: Position) -> String? {
    if problem.contains("cannot start any token"), source.scalar(at: position) == "\t" {
      return "indent with blanks: YAML allows no tabs there"
    }
    if source.scalar(at: position) == "%" { return "put a text that begins with `%` in quotes" }
    if problem.contains("mapping values are not allowed") {
      return "check the indentation, and quote texts that hold `: `"
    }
    return nil
  }
}
