/// JSON whose keys keep their order, for documents that people read, too.
indirect enum JSONText {
  case string(String)
  case whole(Int)
  case number(Double)
  case truth(Bool)
  case array([JSONText])
  case object([(String, JSONText)])

  /// Returns the text with two blanks of indentation. Arrays of scalars stay on one line.
  func rendered(indent: String = "") -> String {
    switch self {
    case .string(let text): return Self.quoted(text)
    case .whole(let value): return String(value)
    case .number(let value): return value == value.rounded() ? String(Int(value)) : String(value)
    case .truth(let value): return String(value)
    case .array(let items):
      guard items.contains(where: \.isNested) else {
        return "[" + items.map { $0.rendered() }.joined(separator: ", ") + "]"
      }
      return block(
        "[", items.map { $0.rendered(indent: indent + "  ") }, close: "]", indent: indent)
    case .object(let pairs):
      guard !pairs.isEmpty else { return "{}" }
      let lines = pairs.map { "\(Self.quoted($0)): \($1.rendered(indent: indent + "  "))" }
      return block("{", lines, close: "}", indent: indent)
    }
  }

  private var isNested: Bool {
    switch self {
    case .array, .object: true
    default: false
    }
  }

  private func block(_ open: String, _ lines: [String], close: String, indent: String) -> String {
    let inner = lines.map { "\(indent)  \($0)" }.joined(separator: ",\n")
    return "\(open)\n\(inner)\n\(indent)\(close)"
  }

  private static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\t": result += "\\t"
      case _ where scalar.value < 0x20:
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}
