/// The lines of `text`, wrapped at blanks. A word that is longer than a line stays whole: paths
/// must be easy to copy.
///
/// - Parameters:
///   - room: the number of columns; nil for one line.
///   - indent: the number of blanks before each line but the first.
///   - cutsWords: whether a word that is longer than a line is cut, and not lost.
package func wrapped(
  _ text: String, to room: Int?, indent: Int = 0, cutsWords: Bool = false
) -> [String] {
  guard let room, displayWidth(text) > room else { return [text] }
  var lines: [String] = []
  var line = ""
  var isBegun = false
  for word in text.split(separator: " ", omittingEmptySubsequences: false) {
    let isBlank = line.allSatisfy { $0 == " " }
    // Blanks at the beginning of the text stay. Blanks at a line break are removed.
    let longer = !isBegun || isBlank && !lines.isEmpty ? String(word) : "\(line) \(word)"
    isBegun = true
    let columns = lines.isEmpty ? room : max(room - indent, 1)
    if isBlank || displayWidth(longer) <= columns {
      line = longer
    } else {
      lines.append(line)
      line = String(word)
    }
    while cutsWords, !line.dropFirst().isEmpty, displayWidth(line) > columns {
      let piece = beginning(of: line, in: columns)
      // A character that is wider than the line is a line of its own.
      lines.append(piece.isEmpty ? String(line.removeFirst()) : piece)
      line.removeFirst(piece.count)
    }
  }
  let blanks = padded("", to: indent)
  return (lines + [line]).enumerated().map { $0.offset == 0 ? $0.element : blanks + $0.element }
}

/// `text` after `lead`. If it is wrapped, further lines begin below the text.
///
/// - Parameter minColumns: the minimum width of the text, however narrow the terminal is.
package func hanging(_ lead: String, _ text: String, to width: Int?, minColumns: Int = 20)
  -> [String]
{
  let indent = displayWidth(lead)
  return wrapped(text, to: width.map { max($0 - indent, minColumns) }).enumerated().map {
    ($0.offset == 0 ? lead : padded("", to: indent)) + $0.element
  }
}

/// `text` in a column of this width.
package func padded(_ text: String, to width: Int, alignsRight: Bool = false) -> String {
  let blanks = String(repeating: " ", count: max(width - displayWidth(text), 0))
  return alignsRight ? blanks + text : text + blanks
}

/// The beginning of `text` that fits into `room` columns.
private func beginning(of text: String, in room: Int) -> String {
  var used = 0
  return String(
    text.prefix { character in
      used += displayWidth(String(character))
      return used <= room
    })
}

/// `text`, or its beginning and an ellipsis if it doesn't fit.
package func shortened(_ text: String, to room: Int?) -> String {
  guard let room, displayWidth(text) > room else { return text }
  return beginning(of: text, in: room - 1) + "…"
}

/// The number of terminal columns of a text: two for wide East Asian characters and emoji, none for
/// combining marks and colours (`Color.paint`). It approximates Unicode TR 11 without a table.
package func displayWidth(_ text: String) -> Int {
  var isColour = false
  return text.unicodeScalars.reduce(0) { width, scalar in
    if isColour || scalar == "\u{1B}" {
      isColour = scalar != "m"
      return width
    }
    switch scalar.value {
    case 0..<0x300: return width + 1
    case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
      0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1FAFF, 0x20000...0x3FFFD:
      return width + 2
    default:
      switch scalar.properties.generalCategory {
      case .nonspacingMark, .enclosingMark, .format: return width
      default: return width + 1
      }
    }
  }
}
