import YAML

/// Reads one YAML document, and records the range of each value. Aliases, and texts with an anchor
/// or a tag, keep their source text, and don't count as texts.
struct YAMLReader {
  private let bytes: [UInt8]
  private let events: YAMLEventReader
  private var offsets: ScalarOffsets

  /// The maximum depth, as in the JSON reader. libyaml itself has no limit.
  private static let maxDepth = 200

  static func read(_ bytes: [UInt8]) throws(ConfigSyntaxError) -> ConfigValue {
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw ConfigSyntaxError(offset: 0, reason: "the file isn't UTF-8")
    }
    do throws(YAMLError) {
      let events = try YAMLEventReader(text)
      var reader = YAMLReader(bytes: bytes, events: events, offsets: ScalarOffsets(bytes))
      return try reader.document()
    } catch { throw ConfigSyntaxError(error, in: bytes) }
  }

  private mutating func document() throws(YAMLError) -> ConfigValue {
    var root: ConfigValue?
    while true {
      let event = try events.next()
      switch event.kind {
      case .streamEnd:
        // A file without a document has no settings.
        return root
          ?? ConfigValue(kind: .table(ConfigTable()), range: bytes.count..<bytes.count)
      case .streamStart, .documentEnd: continue
      case .documentStart:
        if root != nil { throw failure("there is a second document", at: event) }
      default:
        root = try value(event, depth: 0)
      }
    }
  }

  private func failure(_ reason: String, at event: YAMLEvent) -> YAMLError {
    .syntax(.init(problem: reason, mark: event.mark))
  }

  private mutating func range(_ event: YAMLEvent) -> Range<Int> {
    let start = offsets.byte(of: event.scalars.lowerBound)
    return start..<max(start, offsets.byte(of: event.scalars.upperBound))
  }

  private mutating func value(_ event: YAMLEvent, depth: Int) throws(YAMLError) -> ConfigValue {
    let range = range(event)
    switch event.kind {
    case .sequenceStart where depth >= Self.maxDepth, .mappingStart where depth >= Self.maxDepth:
      throw failure("more than \(Self.maxDepth) levels are nested", at: event)
    case .sequenceStart: return try list(event, from: range.lowerBound, depth: depth)
    case .mappingStart: return try table(event, from: range.lowerBound, depth: depth)
    case .scalar(let text, let style):
      let isPlain = style == .plain
      let isText = event.anchor == nil && event.tag == nil && !(isPlain && Self.isOther(text))
      return ConfigValue(kind: isText ? .text(text) : .other(source(range)), range: range)
    default: return ConfigValue(kind: .other(source(range)), range: range)
    }
  }

  private func source(_ range: Range<Int>) -> String {
    String(decoding: bytes[range], as: UTF8.self)
  }

  private mutating func list(
    _ start: YAMLEvent, from first: Int, depth: Int
  ) throws(YAMLError) -> ConfigValue {
    var values: [ConfigValue] = []
    while true {
      let event = try events.next()
      if case .sequenceEnd = event.kind {
        let end = start.isFlow ? range(event).upperBound : values.last?.range.upperBound ?? first
        return ConfigValue(
          kind: .list(values), range: first..<max(first, end),
          origin: start.isFlow ? .value : .block)
      }
      values.append(try value(event, depth: depth + 1))
    }
  }

  private mutating func table(
    _ start: YAMLEvent, from first: Int, depth: Int
  ) throws(YAMLError) -> ConfigValue {
    var table = ConfigTable()
    while true {
      let event = try events.next()
      if case .mappingEnd = event.kind {
        let end =
          start.isFlow ? range(event).upperBound : table.members.last?.value.range.upperBound
        return ConfigValue(
          kind: .table(table), range: first..<max(first, end ?? first),
          origin: start.isFlow ? .value : .block)
      }
      let key = try value(event, depth: depth + 1)
      let name: String
      if case .scalar(let text, _) = event.kind { name = text } else { name = source(key.range) }
      if table.index(of: name) != nil {
        throw failure("the key `\(name)` is already in this mapping", at: event)
      }
      let value = try value(events.next(), depth: depth + 1)
      table.append(
        ConfigMember(
          name: name, key: key.range, lastKey: key.range, value: value, isLine: !start.isFlow))
    }
  }

  /// Returns whether YAML's core schema reads a plain scalar as null, a truth value or a number.
  private static func isOther(_ text: String) -> Bool {
    if ["", "~", "null", "true", "false"].contains(text.lowercased()) { return true }
    guard let first = text.utf8.first, "+-.0123456789".utf8.contains(first) else { return false }
    if text.hasPrefix("0x") || text.hasPrefix("0o") {
      return text.dropFirst(2).allSatisfy(\.isHexDigit)
    }
    if [".inf", "-.inf", "+.inf", ".nan"].contains(text.lowercased()) { return true }
    return text.utf8.allSatisfy { "+-.0123456789eE".utf8.contains($0) } && Double(text) != nil
  }
}

/// The offset of a Unicode scalar in bytes. Finding a scalar that is near the one before is fast.
private struct ScalarOffsets {
  private let bytes: [UInt8]
  private var scalar = 0
  private var byte: Int

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    // libyaml doesn't count a byte order mark.
    byte = bytes.starts(with: ConfigDocument.byteOrderMark) ? 3 : 0
  }

  mutating func byte(of index: Int) -> Int {
    while scalar < index, byte < bytes.count {
      repeat { byte += 1 } while byte < bytes.count && bytes[byte] & 0xC0 == 0x80
      scalar += 1
    }
    while scalar > index, byte > 0 {
      repeat { byte -= 1 } while byte > 0 && bytes[byte] & 0xC0 == 0x80
      scalar -= 1
    }
    return byte
  }
}

extension ConfigSyntaxError {
  fileprivate init(_ error: YAMLError, in bytes: [UInt8]) {
    switch error {
    case .syntax(let syntax): self.init(syntax.mark, in: bytes, reason: syntax.problem)
    case .character(let problem, let offset): self.init(offset: offset, reason: problem)
    case .depth(let limit, let mark):
      self.init(mark, in: bytes, reason: "more than \(limit) levels are nested")
    case .aliases(_, let mark): self.init(mark, in: bytes, reason: "its aliases are too large")
    case .tagDirectives(let limit):
      self.init(offset: 0, reason: "there are more than \(limit) %TAG directives")
    case .outOfMemory: self.init(offset: 0, reason: "there isn't enough memory to read it")
    }
  }

  private init(_ mark: YAMLMark, in bytes: [UInt8], reason: String) {
    var offset = bytes.starts(with: ConfigDocument.byteOrderMark) ? 3 : 0
    for _ in 1..<max(mark.line, 1) {
      guard let end = bytes[offset...].firstIndex(of: UInt8(ascii: "\n")) else { break }
      offset = end + 1
    }
    for _ in 1..<max(mark.column, 1) where offset < bytes.count {
      repeat { offset += 1 } while offset < bytes.count && bytes[offset] & 0xC0 == 0x80
    }
    self.init(offset: min(offset, bytes.count), reason: reason)
  }
}
