import YAML

/// Collects what is wrong with one text while it is read.
final class DiagnosticSink {
  /// More diagnostics than this don't help, and a hostile file could make millions.
  private static let limit = 100

  let source: SourceText
  private var found: [Diagnostic] = []
  /// Diagnostics of other files that this one names, a policy's.
  private var foreign: [Diagnostic] = []

  init(source: SourceText) { self.source = source }

  func error(at position: Position?, _ message: String, suggestion: String? = nil) {
    report(.error, at: position, message, suggestion: suggestion)
  }

  func warning(at position: Position?, _ message: String, suggestion: String? = nil) {
    report(.warning, at: position, message, suggestion: suggestion)
  }

  func add(_ diagnostics: [Diagnostic]) { foreign += diagnostics }

  private func report(
    _ severity: Diagnostic.Severity, at position: Position?, _ message: String,
    suggestion: String?
  ) {
    // An error must not be lost because a hundred warnings came before it.
    guard found.count < Self.limit || (severity == .error && !hasErrors) else { return }
    found.append(
      Diagnostic(
        severity: severity, file: source.file, position: position, message: message,
        suggestion: suggestion, excerpt: position.flatMap(source.excerpt(at:))))
  }

  /// No more diagnostics are reported, so work that only serves a message can be left out.
  var isFull: Bool { found.count >= Self.limit && hasErrors }

  var hasErrors: Bool { found.contains { $0.severity == .error } }

  func result<Value>(_ value: Value?) -> ParseResult<Value> {
    let inOrder = found.enumerated().sorted {
      let (left, right) = ($0.element.position, $1.element.position)
      if left == right { return $0.offset < $1.offset }
      guard let left else { return true }
      guard let right else { return false }
      return left < right
    }
    return ParseResult(value: value, diagnostics: foreign + inOrder.map(\.element))
  }
}

extension YAMLNode {
  var position: Position? { mark.map { Position($0) } }

  /// For messages: what this is, in a reader's words.
  var kind: String {
    switch self {
    case .scalar(let scalar):
      scalar.string.isEmpty ? "empty" : "`\(shortened(scalar.string))`"
    case .mapping: "a mapping"
    case .sequence: "a list"
    }
  }
}

/// A value quoted in a message stays on one line and short.
func shortened(_ text: String) -> String {
  var scalars = text.unicodeScalars.prefix(41).map { scalar -> Unicode.Scalar in
    switch scalar.properties.generalCategory {
    case .control, .format, .privateUse, .lineSeparator, .paragraphSeparator: "\u{FFFD}"
    default: scalar
    }
  }
  if scalars.count > 40 { scalars[40] = "…" }
  return String(String.UnicodeScalarView(scalars))
}
