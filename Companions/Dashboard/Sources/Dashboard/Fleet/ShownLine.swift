import Control

/// Returns a line of a worker's log as a page shows it: as text, without colours, and with every
/// other control character written out. The page never uses it as HTML.
func shownLine(_ line: String) -> String {
  var text = ""
  var rest = Substring(line.prefix(4000))
  while let start = rest.firstIndex(of: "\u{1B}") {
    text += escaped(String(rest[..<start]))
    let sequence = rest[start...].dropFirst()
    guard sequence.first == "[" else {
      text += escaped("\u{1B}")
      rest = sequence
      continue
    }
    let end = sequence.dropFirst().drop { $0.isNumber || $0 == ";" || $0 == ":" }
    if end.first == "m" {
      rest = end.dropFirst()
    } else {
      text += escaped("\u{1B}")
      rest = sequence
    }
  }
  return text + escaped(String(rest))
}
