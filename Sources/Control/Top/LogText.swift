extension TopLog {
  /// The rows of the log that the screen shows: its last rows, or those that are `back` rows
  /// earlier. Longer lines are wrapped.
  ///
  /// - Parameter back: is lowered if the log has fewer rows.
  package func rows(_ count: Int, columns: Int, back: inout Int) -> [String] {
    var fromEnd: [String] = []
    for line in lines.reversed() where fromEnd.count - count < back {
      // Lines are added from the end, so their rows are reversed.
      fromEnd += wrapped(logText(line), to: columns, cutsWords: true).reversed()
    }
    back = max(min(back, fromEnd.count - count), 0)
    return fromEnd.dropFirst(back).prefix(max(count, 0)).reversed()
  }
}

/// One line of a worker's log for a line of the screen, without the sequences that move a cursor or
/// set colours, and with every other control character escaped.
///
/// A program that draws its progress writes over the line with carriage returns. The text after the
/// last one is what its terminal would show.
package func logText(_ line: String) -> String {
  var text = ""
  var column = 0
  var scalars = Substring(line).unicodeScalars
  while let last = scalars.last, last == "\r" { scalars.removeLast() }
  if let index = scalars.lastIndex(of: "\r") {
    scalars = scalars[scalars.index(after: index)...]
  }
  while let scalar = scalars.popFirst() {
    switch scalar {
    case "\u{1B}": dropSequence(&scalars)
    case "\t":
      // A terminal has a tab stop at every eighth column.
      let blanks = 8 - column % 8
      text += String(repeating: " ", count: blanks)
      column += blanks
    default:
      let shown = escaped(String(scalar))
      text += shown
      column += displayWidth(shown)
    }
  }
  return text
}

/// Removes the remainder of a sequence after its ESC (ECMA-48): CSI up to its final character, a
/// string up to its end, or one character.
private func dropSequence(_ scalars: inout Substring.UnicodeScalarView) {
  guard let kind = scalars.popFirst() else { return }
  switch kind {
  case "[":
    while let next = scalars.popFirst() {
      if (0x40...0x7E).contains(next.value) { return }
    }
  case "]", "P", "^", "_", "X":
    while let next = scalars.popFirst() {
      if next == "\u{7}" { return }
      if next == "\u{1B}" {
        _ = scalars.popFirst()
        return
      }
    }
  // A character set is named by one more character.
  case "(", ")", "*", "+", "#": _ = scalars.popFirst()
  default: break
  }
}
