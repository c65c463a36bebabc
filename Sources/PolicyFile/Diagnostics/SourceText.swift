/// A text and its lines, for excerpts below diagnostics.
struct SourceText {
  let file: String
  let text: String
  private let lines: [Substring.UnicodeScalarView]

  init(text: String, file: String) {
    // A byte order mark is no part of the first line.
    let text =
      text.unicodeScalars.first == "\u{FEFF}" ? String(text.unicodeScalars.dropFirst()) : text
    self.text = text
    self.file = file
    // libYAML ends lines at LF, CR LF, CR, NEL, LS and PS, and counts these in its positions.
    // In Swift, each of these is one character, CR LF too.
    lines = text.split(omittingEmptySubsequences: false) { character in
      character.unicodeScalars.first.map(Self.isLineEnd) == true
    }.map(\.unicodeScalars)
  }

  static func isLineEnd(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "\n", "\r", "\u{85}", "\u{2028}", "\u{2029}": true
    default: false
    }
  }

  func excerpt(at position: Position) -> Excerpt? {
    guard lines.indices.contains(position.line - 1) else { return nil }
    return Excerpt(line: Array(lines[position.line - 1]), column: position.column)
  }

  /// Returns the position, or the end of the last line with text if the position is behind the
  /// whole text.
  func clamped(_ position: Position) -> Position {
    guard position.line >= lines.count, scalar(at: Position(line: position.line, column: 1)) == nil,
      let last = lines.lastIndex(where: { !$0.isEmpty })
    else { return position }
    return Position(line: last + 1, column: lines[last].count + 1)
  }

  func scalar(at position: Position) -> Unicode.Scalar? {
    guard lines.indices.contains(position.line - 1) else { return nil }
    return lines[position.line - 1].dropFirst(position.column - 1).first
  }

  /// Returns the position of the scalar that begins `offset` bytes after the start.
  func position(ofByte offset: Int) -> Position {
    let before = String(decoding: text.utf8.prefix(offset), as: UTF8.self)
    let lines = SourceText(text: before, file: file).lines
    return Position(line: lines.count, column: (lines.last?.count ?? 0) + 1)
  }
}

/// One line of a text with a caret below one of its columns.
public struct Excerpt: Hashable, Sendable {
  public var line: String
  /// Blanks and a `^`. It has tabs where the line has them, so that the caret is below its column.
  public var caretLine: String

  private static let width = 120

  init(line: [Unicode.Scalar], column: Int) {
    let caret = min(max(column - 1, 0), line.count)
    // Only the section around the caret is shown of a long line.
    let first = line.count <= Self.width ? 0 : max(0, min(caret - 40, line.count - Self.width))
    let last = min(line.count, first + Self.width)
    let shown = line[first..<last].map(Self.printable)
    let head = first > 0 ? "…" : ""
    self.line = head + String(String.UnicodeScalarView(shown)) + (last < line.count ? "…" : "")
    let blanks = shown[..<(caret - first)].map { $0 == "\t" ? $0 : " " as Unicode.Scalar }
    self.caretLine =
      (head.isEmpty ? "" : " ") + String(String.UnicodeScalarView(blanks)) + "^"
  }

  /// Replaces characters by which a hostile file could control a terminal.
  private static func printable(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
    switch scalar.properties.generalCategory {
    case .control, .format, .privateUse: scalar == "\t" ? scalar : "\u{FFFD}"
    default: scalar
    }
  }
}
