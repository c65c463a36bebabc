import YAML

extension DiagnosticSink {
  /// Reports a text that isn't YAML or exceeds a limit.
  func report(_ problem: YAMLError) {
    switch problem {
    case .syntax(let syntax): report(syntax)
    case .character(let text, let offset):
      error(at: source.position(ofByte: offset), "syntax: \(text)")
    case .depth(let limit, let mark):
      error(
        at: Position(mark), "mappings and lists are nested more than \(limit) levels deep",
        suggestion: "no key here needs more than ten levels")
    case .aliases:
      error(
        at: nil, "the aliases (`*name`) in this file may unfold into too much",
        suggestion: "write the values out, or nest aliases less")
    case .tagDirectives(let limit):
      error(
        at: nil, "more than \(limit) lines begin with `%TAG`",
        suggestion: "leave these lines out: tags aren't used here")
    case .outOfMemory:
      error(at: nil, "can't be read as YAML: out of memory")
    }
  }

  private func report(_ syntax: YAMLError.Syntax) {
    let position = source.clamped(Position(syntax.mark))
    error(
      at: position, "syntax: " + Self.sentence(syntax.context?.text, syntax.problem),
      suggestion: hint(for: syntax.problem, at: position)
        ?? Self.beginning(syntax.context, before: position))
  }

  private static func sentence(_ context: String?, _ problem: String) -> String {
    guard let context, !context.isEmpty else { return problem }
    return "\(context), \(problem)"
  }

  /// Returns a hint at the beginning of an unclosed bracket or quote, which is noticed far behind
  /// it.
  private static func beginning(_ context: YAMLError.Context?, before end: Position) -> String? {
    guard let context else { return nil }
    let begin = Position(context.mark)
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

extension Position {
  init(_ mark: YAMLMark) { self.init(line: mark.line, column: mark.column) }
}
