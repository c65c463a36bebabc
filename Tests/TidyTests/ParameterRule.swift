/// Three and more unlabelled arguments in a call can be exchanged without a word from the compiler,
/// and say nothing to those that read the call. Closures don't count, which mostly stand behind the
/// parenthesis, nor do coordinates.
enum ParameterRule {
  static let maxUnlabelled = 2
  private static let coordinates: Set<String> = ["x", "y", "x1", "y1", "x2", "y2"]

  static let rule: @Sendable (SourceFile) -> [Finding] = { file in
    guard file.isSwift, file.path.hasPrefix("Sources/") else { return [] }
    return file.lines.indices.compactMap { number in
      guard let name = declared(file.lines[number]) else { return nil }
      let count = parameters(file.lines[number...]).filter(isUnlabelled).count
      if count <= maxUnlabelled { return nil }
      return Finding(
        rule: "unlabelled", area: file.area,
        detail: "\(file.path):\(number + 1): \(name) has \(count) parameters without a label")
    }
  }

  /// The function that a line declares, or `init`.
  static func declared(_ line: String) -> String? {
    guard line.utf8Range(of: "func ") != nil || line.utf8Range(of: "init") != nil else {
      return nil
    }
    let tokens = SourceFile.code(line).split(separator: " ")
    for (index, word) in tokens.enumerated() {
      if word == "func", index + 1 < tokens.count {
        return String(tokens[index + 1].prefix { $0 != "(" && $0 != "<" })
      }
      if ["init(", "init?(", "init!(", "init<"].contains(where: word.hasPrefix) { return "init" }
      // A modifier or an attribute; anything else is no declaration.
      guard word.utf8.allSatisfy({ isLetter($0) || "@()".utf8.contains($0) }),
        !["return", "let", "var", "try", "await", "case", "in", "else"].contains(word)
      else { return nil }
    }
    return nil
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
  }

  /// The declaration's parameters, which may stand on several lines.
  static func parameters(_ lines: ArraySlice<String>) -> [String] {
    var parameters: [String] = []
    var current: [UInt8] = []
    // The depth of (, [ and {, and that of <, which may also be an operator or belong to an arrow.
    var (depth, angles, isInString) = (0, 0, false)
    var previous = UInt8(ascii: " ")
    for line in lines {
      for byte in SourceFile.code(line).utf8 {
        defer { previous = byte }
        if byte == UInt8(ascii: "\""), previous != UInt8(ascii: "\\") { isInString.toggle() }
        if !isInString {
          switch byte {
          case UInt8(ascii: "("), UInt8(ascii: "["), UInt8(ascii: "{"):
            depth += 1
            if depth == 1, angles == 0, byte == UInt8(ascii: "(") { continue }
          case UInt8(ascii: ")"), UInt8(ascii: "]"), UInt8(ascii: "}"):
            depth -= 1
            if depth == 0, angles == 0 {
              return parameters + [text(current)].filter { !$0.isEmpty }
            }
          case UInt8(ascii: "<") where previous != UInt8(ascii: " "): angles += 1
          case UInt8(ascii: ">") where previous != UInt8(ascii: "-") && angles > 0: angles -= 1
          case UInt8(ascii: ",") where depth == 1 && angles == 0:
            parameters.append(text(current))
            current = []
            continue
          default: break
          }
        }
        if depth > 0 { current.append(byte) }
      }
      current.append(UInt8(ascii: " "))
    }
    return parameters
  }

  private static func text(_ bytes: [UInt8]) -> String {
    String(decoding: bytes, as: UTF8.self).split(separator: " ").joined(separator: " ")
  }

  static func isUnlabelled(_ parameter: String) -> Bool {
    guard let label = parameter.split(separator: " ").firstIndex(where: { !$0.hasPrefix("@") })
    else { return false }
    let tokens = parameter.split(separator: " ")[label...]
    guard tokens.first == "_", let name = tokens.dropFirst().first else { return false }
    return !parameter.contains("->") && !parameter.contains("@escaping")
      && !coordinates.contains(String(name.prefix { $0 != ":" }))
  }
}
