/// Writes YAML, which operators read and change, and which Dormouse's own reader reads.
indirect enum YAMLText {
  /// A text, which is put in quotes if necessary.
  case text(String)
  /// A text that is written as it is.
  case plain(String)
  case list([YAMLText])
  case mapping([(String, YAMLText)])

  private static let width = 88

  /// Returns `key: value`, on as many lines as necessary.
  static func lines(_ key: String, _ value: YAMLText, indent: String = "") -> [String] {
    let name = scalar(key)
    if value.mayFlow, indent.count + name.count + value.flow.count + 2 <= width {
      return ["\(indent)\(name): \(value.flow)"]
    }
    switch value {
    case .text, .plain: return ["\(indent)\(name): \(value.flow)"]
    case .list(let items):
      return ["\(indent)\(name):"] + items.map { "\(indent)  - \($0.flow)" }
    case .mapping(let pairs):
      return ["\(indent)\(name):"]
        + pairs.flatMap { key, value in lines(key, value, indent: indent + "  ") }
    }
  }

  /// True if the value can be on one line. Mappings of mappings are easier to read on separate
  /// lines.
  private var mayFlow: Bool {
    guard case .mapping(let pairs) = self else { return true }
    return pairs.count <= 3
      && pairs.allSatisfy { _, value in
        if case .mapping(let inner) = value { return inner.count <= 1 }
        return true
      }
  }

  /// nil for an empty list or mapping.
  var nonEmpty: YAMLText? {
    switch self {
    case .list(let items): items.isEmpty ? nil : self
    case .mapping(let pairs): pairs.isEmpty ? nil : self
    default: self
    }
  }

  /// The value on one line.
  var flow: String {
    switch self {
    case .text(let text): return Self.scalar(text)
    case .plain(let text): return text
    case .list(let items):
      return "[" + items.map { $0.flow }.joined(separator: ", ") + "]"
    case .mapping(let pairs):
      guard !pairs.isEmpty else { return "{}" }
      let inner = pairs.map { key, value in "\(Self.scalar(key)): \(value.flow)" }
      return "{ \(inner.joined(separator: ", ")) }"
    }
  }

  /// Returns a text as a scalar that has the same meaning within `[ ]`, too, and for readers that
  /// convert numbers.
  static func scalar(_ text: String) -> String {
    isPlain(text) ? text : quoted(text)
  }

  private static func isPlain(_ text: String) -> Bool {
    // A lone `-` begins an item, and `=` was a type in earlier versions of YAML.
    guard text.utf8.count <= 200, !reserved.contains(text.lowercased()), !looksLikeNumber(text),
      let first = text.utf8.first, first != UInt8(ascii: "+"), first != UInt8(ascii: "=")
    else { return false }
    return text.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "/"),
        UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "="):
        true
      default: false
      }
    }
  }

  private static let reserved: Set<String> = [
    "true", "false", "null", "yes", "no", "on", "off", "y", "n", "-", "--", "---", "...",
  ]

  /// Returns true for texts such as `12`, `-5`, `.5` and `.inf`.
  private static func looksLikeNumber(_ text: String) -> Bool {
    var remainder = Substring(text)
    if remainder.hasPrefix("-") { remainder = remainder.dropFirst() }
    let hasPoint = remainder.hasPrefix(".")
    if hasPoint { remainder = remainder.dropFirst() }
    let isDigit = remainder.utf8.first.map { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    return isDigit ?? true || hasPoint && ["inf", "nan"].contains(remainder.lowercased())
  }

  private static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\t": result += "\\t"
      case "\r": result += "\\r"
      case "\u{85}": result += "\\N"
      case _ where scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value):
        let digits = String(scalar.value, radix: 16)
        result += "\\x" + (digits.count == 1 ? "0" : "") + digits
      case "\u{FFFE}", "\u{FFFF}": result += "\\u" + String(scalar.value, radix: 16)
      case "\u{2028}": result += "\\L"
      case "\u{2029}": result += "\\P"
      case "\u{FEFF}": result += "\\uFEFF"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}
