/// A host's configuration file: its bytes, and their meaning.
struct ConfigDocument: Sendable {
  enum Format: Sendable {
    /// JSON with comments and trailing commas, which VS Code and Zed permit.
    case json
    case toml
    case yaml
  }

  static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

  let format: Format
  let bytes: [UInt8]
  let root: ConfigValue

  init(_ bytes: [UInt8], _ format: Format) throws(ConfigSyntaxError) {
    self.format = format
    self.bytes = bytes
    switch format {
    case .json: root = try JSONReader.read(bytes)
    case .toml: root = try TOMLReader.read(bytes)
    case .yaml: root = try YAMLReader.read(bytes)
    }
  }

  /// The document after some edits.
  func applying(_ edits: [TextEdit]) throws(ConfigSyntaxError) -> ConfigDocument {
    try ConfigDocument(TextEdit.apply(edits, to: bytes), format)
  }

  /// A text as a literal. The formats have these escapes in common.
  static func literal(_ text: String) -> [UInt8] {
    var result = [UInt8(ascii: "\"")]
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): result += [UInt8(ascii: "\\"), byte]
      case UInt8(ascii: "\n"): result += "\\n".utf8
      case UInt8(ascii: "\t"): result += "\\t".utf8
      case UInt8(ascii: "\r"): result += "\\r".utf8
      case 0..<0x20, 0x7F:
        let digits = String(byte, radix: 16)
        result += ("\\u00" + (digits.utf8.count == 1 ? "0" : "") + digits).utf8
      default: result.append(byte)
      }
    }
    return result + [UInt8(ascii: "\"")]
  }

  /// Returns whether the range has only blanks and line ends.
  func isBlank(_ range: Range<Int>) -> Bool { bytes[range].allSatisfy(\.isBlank) }

  /// The offset of the first byte from `offset` on that belongs to no blank and no comment.
  func afterSpace(_ offset: Int) -> Int {
    var offset = offset
    while offset < bytes.count {
      if bytes[offset].isBlank {
        offset += 1
      } else if let end = commentEnd(offset) {
        offset = end
      } else {
        break
      }
    }
    return offset
  }

  /// The end of the comment that begins at `offset`; nil if there is none.
  private func commentEnd(_ offset: Int) -> Int? {
    switch format {
    case .toml, .yaml:
      return bytes[offset] == UInt8(ascii: "#") ? lineEnd(offset) : nil
    case .json:
      guard bytes[offset] == UInt8(ascii: "/"), offset + 1 < bytes.count else { return nil }
      if bytes[offset + 1] == UInt8(ascii: "/") { return lineEnd(offset) }
      guard bytes[offset + 1] == UInt8(ascii: "*") else { return nil }
      var end = offset + 2
      while end + 1 < bytes.count, bytes[end...].prefix(2) != [0x2A, 0x2F] { end += 1 }
      return min(end + 2, bytes.count)
    }
  }

  /// The end of the line without its line end, which may have two bytes.
  func lineEnd(_ offset: Int) -> Int {
    let end = bytes[offset...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
    return end > offset && bytes[end - 1] == UInt8(ascii: "\r") ? end - 1 : end
  }

  func lineStart(_ offset: Int) -> Int {
    bytes[..<offset].lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
  }
}

extension UInt8 {
  /// True for a space, a tab, or a byte of a line end.
  var isBlank: Bool { self == 0x20 || self == 0x09 || self == 0x0A || self == 0x0D }

  /// True for an ASCII letter or digit.
  var isLetterOrDigit: Bool {
    (0x30...0x39).contains(self) || (0x41...0x5A).contains(self) || (0x61...0x7A).contains(self)
  }
}

/// A replacement for a range of bytes.
struct TextEdit: Hashable, Sendable {
  var range: Range<Int>
  var bytes: [UInt8]

  init(_ range: Range<Int>, _ bytes: some Sequence<UInt8> = []) {
    self.range = range
    self.bytes = Array(bytes)
  }

  /// Applies edits, which mustn't overlap.
  static func apply(_ edits: [TextEdit], to bytes: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var offset = 0
    for edit in sorted(edits) {
      result += bytes[offset..<edit.range.lowerBound]
      result += edit.bytes
      offset = edit.range.upperBound
    }
    return result + bytes[offset...]
  }

  static func sorted(_ edits: [TextEdit]) -> [TextEdit] {
    edits.sorted { $0.range.lowerBound < $1.range.lowerBound }
  }
}
