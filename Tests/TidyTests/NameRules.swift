/// Rules for names (CONTRIBUTING.md, "Names and comments").
enum NameRules {
  /// A function whose name begins with `is`, `has`, `was` or `are` returns a Boolean. One that
  /// changes something is a verb, and a report to a delegate is `didX`.
  static let booleans: @Sendable (SourceFile) -> [Finding] = { file in
    guard file.isSwift else { return [] }
    return file.lines.indices.compactMap { number in
      let line = file.lines[number]
      guard !file.textLines.contains(number), line.utf8Range(of: "func ") != nil,
        let name = ParameterRule.declared(line),
        hasBooleanName(name), !returnsBoolean(file.lines[number...])
      else { return nil }
      return Finding(
        rule: "boolean", area: file.area,
        detail: "\(file.path):\(number + 1): \(name) returns no Boolean")
    }
  }

  private static func hasBooleanName(_ name: String) -> Bool {
    ["is", "has", "was", "are"].contains { prefix in
      name.hasPrefix(prefix)
        && name.utf8.dropFirst(prefix.utf8.count).first.map {
          (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0)
        } == true
    }
  }

  /// Reads the declaration up to its body. In a protocol it ends with the line that closes its
  /// parameters.
  private static func returnsBoolean(_ lines: ArraySlice<String>) -> Bool {
    var depth = 0
    for (number, line) in lines.enumerated() {
      if depth == 0, number > 0,
        !line.utf8.drop(while: { $0 == UInt8(ascii: " ") })
          .starts(with: "->".utf8)
      {
        return false
      }
      for byte in SourceFile.code(line).utf8 {
        if byte == UInt8(ascii: "(") { depth += 1 }
        if byte == UInt8(ascii: ")") { depth -= 1 }
      }
      if depth == 0, line.utf8Range(of: "-> Bool") != nil { return true }
    }
    return false
  }

  /// Words that stood for many things at once, and what is meant instead.
  static let vague: [(word: StaticString, meant: String)] = [
    ("place", "index, offset, path, column, slot"), ("look", "poll, sample, scan, check, read"),
    ("take", "consume, accept, claim, merge, remove"), ("rest", "remainder, tail"),
    ("settle", "resolve, finish"), ("hold", "keep, pin, block"), ("note", "record, log"),
    ("words", "text, tokens, arguments"), ("why", "reason"), ("patience", "timeout"),
    ("most", "max"), ("least", "min"), ("part", "segment, share, component"),
    ("own", "whose it is"), ("found", "what was found"), ("known", "recorded, learned"),
    ("news", "events"), ("book", "table"), ("bell", "wakeup"), ("crew", "shared"),
    ("mates", "what is counted"), ("chore", "task"),
  ]
  private static let keys: [UInt64: StaticString] = Dictionary(
    uniqueKeysWithValues: vague.map { ($0.word.withUTF8Buffer { key($0) }, $0.word) })

  /// Parts of identifiers, outside of comments and strings: `lookAgain` has the word `look`. A raw
  /// identifier is a sentence, as a string is.
  static let vagueNames: @Sendable (SourceFile) -> [Finding] = { file in
    guard file.isSwift else { return [] }
    var findings: [Finding] = []
    for (number, line) in file.lines.enumerated() where !file.textLines.contains(number) {
      for word in vagueTokens(in: line) {
        findings.append(
          Finding(rule: "name", area: file.area, detail: "\(file.path):\(number + 1): \(word)"))
      }
    }
    return findings
  }

  static func vagueTokens(in line: String) -> [StaticString] {
    var tokens: [StaticString] = []
    var (word, length) = (UInt64(0), 0)
    var quote: UInt8?
    var previous = UInt8(ascii: " ")
    func finish() {
      if (3...8).contains(length), let name = keys[word] { tokens.append(name) }
      (word, length) = (0, 0)
    }
    for byte in line.utf8 {
      defer { previous = byte }
      if byte == UInt8(ascii: "`") || byte == UInt8(ascii: "\"") && previous != UInt8(ascii: "\\") {
        if quote == nil { quote = byte } else if quote == byte { quote = nil }
      }
      if quote == nil, byte == UInt8(ascii: "/"), previous == byte { break }
      let lower = byte | 0x20
      guard quote == nil, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(lower) else {
        finish()
        continue
      }
      // A capital after a small letter begins the next word of an identifier.
      if byte != lower, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(previous) { finish() }
      (word, length) = (word << 8 | UInt64(lower), length + 1)
    }
    finish()
    return tokens
  }

  private static func key(_ bytes: some Sequence<UInt8>) -> UInt64 {
    bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }
}

/// Rules for comments, and for the length of lines.
enum CommentRules {
  static let maxColumns = 100

  /// The formatter breaks code, but no comment and no string.
  static let columns: @Sendable (SourceFile) -> [Finding] = { file in
    guard file.isSwift || file.path.hasSuffix(".c") || file.path.hasSuffix(".h") else { return [] }
    return file.lines.indices.compactMap { number in
      // A character has at least one byte.
      let line = file.lines[number]
      guard line.utf8.count > maxColumns, line.count > maxColumns else { return nil }
      return Finding(
        rule: "columns", area: file.area,
        detail: "\(file.path):\(number + 1): \(line.count) columns, more than \(maxColumns)")
    }
  }

  private static let beginnings: [StaticString] = [
    "Of ", "The same", "As above", "As before", "Likewise", "Also ", "And ", "Or ", "But ",
    "What came",
  ]

  /// A comment stands alone: Quick Help shows it without its neighbours.
  static let beginning: @Sendable (SourceFile) -> [Finding] = { file in
    guard file.isSwift else { return [] }
    var findings: [Finding] = []
    var isAfterComment = false
    for (number, line) in file.lines.enumerated() where !file.textLines.contains(number) {
      let text = comment(line)
      defer { isAfterComment = text?.isWholeLine == true }
      guard let text, !isAfterComment || !text.isWholeLine,
        let start = beginnings.first(where: { text.text.utf8.starts(with: $0.bytes) })
      else { continue }
      findings.append(
        Finding(
          rule: "comment", area: file.area,
          detail: "\(file.path):\(number + 1): a comment begins with \"\(start)\""))
    }
    return findings
  }

  /// What a line says behind `//` or `///`.
  static func comment(_ line: String) -> (text: Substring, isWholeLine: Bool)? {
    let code = SourceFile.code(line)
    guard code.endIndex < line.endIndex else { return nil }
    let text = line[code.endIndex...].drop { $0 == "/" }.drop { $0 == " " }
    return (text, code.allSatisfy { $0 == " " })
  }
}

extension StaticString {
  fileprivate var bytes: UnsafeBufferPointer<UInt8> {
    UnsafeBufferPointer(start: utf8Start, count: utf8CodeUnitCount)
  }
}
