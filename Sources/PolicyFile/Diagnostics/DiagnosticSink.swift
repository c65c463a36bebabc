import Policy
import YAML

/// Collects the diagnostics of one text while the text is read.
final class DiagnosticSink {
  /// The maximum number of diagnostics. More don't help, and a hostile file could cause millions.
  private static let limit = 100

  let source: SourceText
  private var reported: [Diagnostic] = []
  /// The diagnostics of other files that this one names, such as a policy's.
  private var foreign: [Diagnostic] = []

  init(source: SourceText) { self.source = source }

  func error(at position: Position?, _ message: String, suggestion: String? = nil) {
    report(.error, at: position, message, suggestion: suggestion)
  }

  func warning(at position: Position?, _ message: String, suggestion: String? = nil) {
    report(.warning, at: position, message, suggestion: suggestion)
  }

  /// Returns whether a name is valid. If it isn't, that is reported.
  ///
  /// - Parameter owner: what has the name, such as `a worker`.
  @discardableResult
  func allows(_ name: String, of owner: String, at position: Position?) -> Bool {
    if NameRule.allows(name) { return true }
    error(
      at: position, "`\(shortened(name))` can't be \(owner)'s name",
      suggestion: "a name has \(NameRule.text)")
    return false
  }

  func add(_ diagnostics: [Diagnostic]) { foreign += diagnostics }

  func report(
    _ severity: Diagnostic.Severity, at position: Position?, _ message: String,
    suggestion: String?
  ) {
    // The first error must not be lost because a hundred warnings came before it.
    guard reported.count < Self.limit || (severity == .error && !hasErrors) else { return }
    reported.append(
      Diagnostic(
        severity: severity, file: source.file, position: position, message: message,
        suggestion: suggestion, excerpt: position.flatMap(source.excerpt(at:))))
  }

  /// True if no more diagnostics are reported. Work that only serves a message can be left out
  /// then.
  var isFull: Bool { reported.count >= Self.limit && hasErrors }

  var hasErrors: Bool { reported.contains { $0.severity == .error } }

  func result<Value>(_ value: Value?) -> ParseResult<Value> {
    ParseResult(value: value, diagnostics: diagnostics)
  }

  /// The first error of all diagnostics.
  var firstError: Diagnostic? { diagnostics.first { $0.severity == .error } }

  /// All diagnostics: those of other files, and then those of this one in the order of the text.
  var diagnostics: [Diagnostic] {
    let inOrder = reported.enumerated().sorted {
      let (left, right) = ($0.element.position, $1.element.position)
      if left == right { return $0.offset < $1.offset }
      guard let left else { return true }
      guard let right else { return false }
      return left < right
    }
    return foreign + inOrder.map(\.element)
  }
}

extension YAMLNode {
  var position: Position? { mark.map { Position($0) } }

  /// The kind of this node, in words for messages.
  var kind: String {
    switch self {
    case .scalar(let scalar):
      scalar.string.isEmpty ? "empty" : "`\(shortened(scalar.string))`"
    case .mapping: "a mapping"
    case .sequence: "a list"
    }
  }
}

/// Returns a value for a message: on one line and short.
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
