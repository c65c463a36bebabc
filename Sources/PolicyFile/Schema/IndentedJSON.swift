import JSONLines

extension JSON {
  /// Returns the text with two blanks of indentation. Arrays of scalars stay on one line.
  func indented(_ indent: String = "") -> String {
    let inner = indent + "  "
    switch self {
    case .array(let items) where items.contains(where: \.isNested):
      return Self.block("[", items.map { $0.indented(inner) }, close: "]", indent: indent)
    case .array(let items):
      return "[" + items.map { $0.indented() }.joined(separator: ", ") + "]"
    case .object(let members) where !members.isEmpty:
      let lines = members.map { "\(JSON.string($0.name).indented()): \($0.value.indented(inner))" }
      return Self.block("{", lines, close: "}", indent: indent)
    default: return String(decoding: line, as: UTF8.self)
    }
  }

  private var isNested: Bool {
    switch self {
    case .array, .object: true
    default: false
    }
  }

  private static func block(
    _ open: String, _ lines: [String], close: String, indent: String
  ) -> String {
    let inner = lines.map { "\(indent)  \($0)" }.joined(separator: ",\n")
    return "\(open)\n\(inner)\n\(indent)\(close)"
  }
}
