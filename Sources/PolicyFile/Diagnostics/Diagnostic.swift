/// A position in a text. Both numbers count from 1; columns count Unicode scalars, as libYAML does.
public struct Position: Hashable, Comparable, Sendable {
  public var line: Int
  public var column: Int

  public static func < (left: Position, right: Position) -> Bool {
    (left.line, left.column) < (right.line, right.column)
  }
}

/// An error or a warning about a file: what is wrong, where, and how to correct it.
public struct Diagnostic: Hashable, Sendable {
  public enum Severity: String, Hashable, Sendable { case error, warning }

  public var severity: Severity
  /// The file's name as the caller gave it.
  public var file: String
  /// The position of the fault. `nil`: it concerns the file as a whole, such as a file that can't
  /// be read.
  public var position: Position?
  /// One sentence, without a full stop.
  public var message: String
  /// A correction: the nearest valid spelling, or what to write.
  public var suggestion: String?
  /// The line, and the column of the caret in it, ready for a terminal.
  public var excerpt: Excerpt?

  public init(
    severity: Severity, file: String, position: Position?, message: String,
    suggestion: String? = nil, excerpt: Excerpt? = nil
  ) {
    self.severity = severity
    self.file = file
    self.position = position
    self.message = message
    self.suggestion = suggestion
    self.excerpt = excerpt
  }

  /// The diagnostic in the form that compilers use:
  /// ```
  /// web.yaml:3:3: error: unknown key `max_footprnt` in `hibernate`
  ///   max_footprnt: 16MB
  ///   ^
  /// help: did you mean `max_footprint`?
  /// ```
  public var rendered: String {
    var location = file
    if let position { location += ":\(position.line):\(position.column)" }
    var lines = ["\(location): \(severity.rawValue): \(message)"]
    if let excerpt { lines += [excerpt.line, excerpt.caretLine] }
    if let suggestion { lines.append("help: \(suggestion)") }
    return lines.joined(separator: "\n")
  }
}

/// A value, if the text had no errors, and all diagnostics of the text.
public struct ParseResult<Value: Sendable>: Sendable {
  /// The value. It is `nil` exactly when there is an error among the diagnostics.
  public var value: Value?
  /// The diagnostics in the order of the text.
  public var diagnostics: [Diagnostic]

  public init(value: Value?, diagnostics: [Diagnostic]) {
    self.value = diagnostics.contains { $0.severity == .error } ? nil : value
    self.diagnostics = diagnostics
  }

  public var errors: [Diagnostic] { diagnostics.filter { $0.severity == .error } }
  public var warnings: [Diagnostic] { diagnostics.filter { $0.severity == .warning } }
  /// All diagnostics as text, one after the other.
  public var rendered: String { diagnostics.map(\.rendered).joined(separator: "\n") }
}

extension ParseResult: Equatable where Value: Equatable {}
