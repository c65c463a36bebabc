/// The colours of the output, by their SGR codes (ECMA-48). Every terminal lets its user choose
/// these.
package enum Color: String {
  case red = "31"
  case green = "32"
  case yellow = "33"
  case blue = "34"
  case magenta = "35"
  case cyan = "36"
  case bold = "1"
  case dim = "2"

  package func paint(_ text: String) -> String { "\u{1B}[\(rawValue)m\(text)\u{1B}[0m" }

  /// Returns the text in this colour if the output has colours. An empty text stays empty.
  package func paint(_ text: String, if isColored: Bool) -> String {
    isColored && !text.isEmpty ? paint(text) : text
  }

  package static func ofState(_ state: String) -> Color {
    switch state {
    case "foreground": .green
    case "background": .cyan
    case "suspended": .yellow
    case "hibernated": .blue
    case "terminated": .dim
    default: .magenta
    }
  }

  package static func ofPressure(_ level: String) -> Color {
    switch level {
    case "normal": .green
    case "warning": .yellow
    default: .red
    }
  }
}
