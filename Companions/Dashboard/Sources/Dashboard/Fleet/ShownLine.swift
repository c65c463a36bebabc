import Control

/// Returns a line of a worker's log as a page shows it: as text, without colours, and with every
/// other control character written out. The page never uses it as HTML.
func shownLine(_ line: String) -> String {
  var text = ""
  var remainder = Substring(line.prefix(4000))
  while let start = remainder.firstIndex(of: "\u{1B}") {
    text += escaped(String(remainder[..<start]))
    let sequence = remainder[start...].dropFirst()
    guard sequence.first == "[" else {
      text += escaped("\u{1B}")
      remainder = sequence
      continue
    }
    let end = sequence.dropFirst().drop { $0.isNumber || $0 == ";" || $0 == ":" }
    if end.first == "m" {
      remainder = end.dropFirst()
    } else {
      text += escaped("\u{1B}")
      remainder = sequence
    }
  }
  return text + escaped(String(remainder))
}
