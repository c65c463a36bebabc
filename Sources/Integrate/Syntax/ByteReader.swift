/// What the readers of JSON and TOML have in common. They read a file byte by byte.
protocol ByteReader {
  var bytes: [UInt8] { get }
  var position: Int { get set }
  /// Skips blanks, line ends and comments.
  mutating func skipSpace() throws(ConfigSyntaxError)
  mutating func value(depth: Int) throws(ConfigSyntaxError) -> ConfigValue
}

extension ByteReader {
  /// The maximum depth: more levels than a configuration has, and far fewer than a thread's stack
  /// allows.
  static var maxDepth: Int { 200 }

  var next: UInt8? { position < bytes.count ? bytes[position] : nil }

  func failure(_ reason: String, at offset: Int? = nil) -> ConfigSyntaxError {
    ConfigSyntaxError(offset: offset ?? position, reason: reason)
  }

  func expected(_ what: String) -> ConfigSyntaxError {
    guard next != nil else { return failure("the file ends where \(what) is expected") }
    return failure("\(what) is expected here")
  }

  mutating func consume(_ byte: UInt8) -> Bool {
    guard next == byte else { return false }
    position += 1
    return true
  }

  mutating func elements(_ depth: Int) throws(ConfigSyntaxError) -> [ConfigValue] {
    var values: [ConfigValue] = []
    try readItems(until: UInt8(ascii: "]")) { (reader) throws(ConfigSyntaxError) in
      values.append(try reader.value(depth: depth + 1))
    }
    return values
  }

  /// Reads what is between brackets or braces: items with commas between them. There may be a comma
  /// after the last one.
  mutating func readItems(
    until end: UInt8, _ readItem: (inout Self) throws(ConfigSyntaxError) -> Void
  ) throws(ConfigSyntaxError) {
    position += 1
    while true {
      try skipSpace()
      if consume(end) { return }
      try readItem(&self)
      try skipSpace()
      if next == end { continue }
      guard consume(UInt8(ascii: ",")) else {
        throw expected("`,` or `\(Character(Unicode.Scalar(end)))`")
      }
    }
  }
}
