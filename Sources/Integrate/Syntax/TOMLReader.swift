/// Reads TOML 1.1, and records the range of each value.
struct TOMLReader: ByteReader {
  let bytes: [UInt8]
  var position = 0
  private var root = ConfigValue(kind: .table(ConfigTable()), range: 0..<0, origin: .header)
  /// The keys of the last header.
  private var current: [TOMLKey] = []

  static func read(_ bytes: [UInt8]) throws(ConfigSyntaxError) -> ConfigValue {
    var reader = TOMLReader(bytes: bytes)
    if bytes.starts(with: ConfigDocument.byteOrderMark) { reader.position = 3 }
    while reader.next != nil {
      reader.skipBlanks()
      switch reader.next {
      case UInt8(ascii: "["): try reader.header()
      case nil, UInt8(ascii: "\n"), UInt8(ascii: "\r"), UInt8(ascii: "#"): break
      default: try reader.line()
      }
      try reader.endOfLine()
    }
    return reader.root
  }

  /// Skips spaces and tabs.
  mutating func skipBlanks() {
    while let byte = next, byte == 0x20 || byte == 0x09 { position += 1 }
  }

  mutating func skipComment() {
    guard next == UInt8(ascii: "#") else { return }
    while let byte = next, byte != UInt8(ascii: "\n") { position += 1 }
  }

  private mutating func endOfLine() throws(ConfigSyntaxError) {
    skipBlanks()
    skipComment()
    if next == nil || consume(UInt8(ascii: "\n")) { return }
    guard consume(UInt8(ascii: "\r")), consume(UInt8(ascii: "\n")) else {
      throw expected("the end of the line")
    }
  }

  private mutating func header() throws(ConfigSyntaxError) {
    let start = position
    position += 1
    let isOfTables = consume(UInt8(ascii: "["))
    skipBlanks()
    let path = try keys()
    for _ in 0..<(isOfTables ? 2 : 1) where !consume(UInt8(ascii: "]")) { throw expected("`]`") }
    let table = ConfigValue(kind: .table(ConfigTable()), range: start..<position, origin: .header)
    try root.open(path[...], table, isOfTables: isOfTables)
    current = path
  }

  private mutating func line() throws(ConfigSyntaxError) {
    let path = try keys()
    guard consume(UInt8(ascii: "=")) else { throw expected("`=`") }
    skipBlanks()
    let value = try value(depth: 0)
    try root.add(path[...], value, isLine: true, in: current[...])
  }

  /// Reads a key such as `a."b".c`, and the blanks after it.
  mutating func keys() throws(ConfigSyntaxError) -> [TOMLKey] {
    var keys: [TOMLKey] = []
    repeat {
      skipBlanks()
      let start = position
      let name: String
      switch next {
      case UInt8(ascii: "\""): name = try basicString()
      case UInt8(ascii: "'"): name = try literalString()
      default: name = try bareKey()
      }
      keys.append(TOMLKey(name: name, range: start..<position))
      skipBlanks()
    } while consume(UInt8(ascii: "."))
    return keys
  }

  private mutating func bareKey() throws(ConfigSyntaxError) -> String {
    let start = position
    while let byte = next, byte.isLetterOrDigit || "_-".utf8.contains(byte) { position += 1 }
    if position == start { throw expected("a key") }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }
}

/// One component of a key.
struct TOMLKey {
  var name: String
  var range: Range<Int>

  var definedTwice: ConfigSyntaxError {
    ConfigSyntaxError(offset: range.lowerBound, reason: "`\(name)` is defined twice")
  }
}

// MARK: - Tables

/// The tables of the document. After an error, a value may be incomplete.
extension ConfigValue {
  /// Opens the table of a header, `[path]` or `[[path]]`.
  fileprivate mutating func open(
    _ path: ArraySlice<TOMLKey>, _ table: ConfigValue, isOfTables: Bool
  ) throws(ConfigSyntaxError) {
    guard let key = path.first else { return }
    if path.count > 1 {
      let implied = ConfigValue(kind: .table(ConfigTable()), range: table.range, origin: .implied)
      return try change(key, missing: implied) { (inner) throws(ConfigSyntaxError) in
        if inner.origin == .dotted { throw key.definedTwice }
        try inner.open(path.dropFirst(), table, isOfTables: isOfTables)
      }
    }
    guard var members = detachTable() else { return }
    if let index = members.index(of: key.name) {
      let origin = members[index].origin
      if isOfTables, origin == .tables {
        members[index].append(table)
      } else if !isOfTables, origin == .implied {
        members[index].origin = .header
      } else {
        throw key.definedTwice
      }
    } else {
      let value =
        isOfTables
        ? ConfigValue(kind: .list([table]), range: table.range, origin: .tables) : table
      members.append(ConfigMember(key, path: [key], value, isLine: false))
    }
    kind = .table(members)
  }

  /// Adds `path = value` to the table `current`.
  mutating func add(
    _ path: ArraySlice<TOMLKey>, _ value: ConfigValue, isLine: Bool,
    in current: ArraySlice<TOMLKey> = []
  ) throws(ConfigSyntaxError) {
    if let key = current.first {
      return try change(key, missing: nil) { (inner) throws(ConfigSyntaxError) in
        try inner.add(path, value, isLine: isLine, in: current.dropFirst())
      }
    }
    try add(path, all: path, value, isLine: isLine)
  }

  private mutating func add(
    _ path: ArraySlice<TOMLKey>, all: ArraySlice<TOMLKey>, _ value: ConfigValue, isLine: Bool
  ) throws(ConfigSyntaxError) {
    guard let key = path.first else { return }
    if path.count > 1 {
      let dotted = ConfigValue(kind: .table(ConfigTable()), range: key.range, origin: .dotted)
      return try change(key, missing: dotted) { (inner) throws(ConfigSyntaxError) in
        if inner.origin != .dotted { throw key.definedTwice }
        try inner.add(path.dropFirst(), all: all, value, isLine: isLine)
      }
    }
    guard var members = detachTable() else { return }
    if members.index(of: key.name) != nil { throw key.definedTwice }
    members.append(ConfigMember(key, path: all, value, isLine: isLine))
    kind = .table(members)
  }

  /// Changes a member. If it is a list of tables, the last table is changed.
  private mutating func change(
    _ key: TOMLKey, missing: ConfigValue?,
    _ body: (inout ConfigValue) throws(ConfigSyntaxError) -> Void
  ) throws(ConfigSyntaxError) {
    guard var members = detachTable() else { throw key.definedTwice }
    if let missing, members.index(of: key.name) == nil {
      members.append(ConfigMember(key, path: [key], missing, isLine: false))
    }
    guard let index = members.index(of: key.name) else { throw key.definedTwice }
    try members[index].changeLast(key, body)
    kind = .table(members)
  }

  private mutating func changeLast(
    _ key: TOMLKey, _ body: (inout ConfigValue) throws(ConfigSyntaxError) -> Void
  ) throws(ConfigSyntaxError) {
    if origin == .tables, case .list(var list) = kind, !list.isEmpty {
      kind = .list([])
      try body(&list[list.count - 1])
      kind = .list(list)
    } else {
      // A value between braces or brackets is complete.
      if origin == .value { throw key.definedTwice }
      try body(&self)
    }
  }

  private mutating func append(_ table: ConfigValue) {
    guard case .list(var list) = kind else { return }
    kind = .list([])
    list.append(table)
    kind = .list(list)
  }

  /// Returns the table and leaves an empty one, so that changing the result copies nothing.
  private mutating func detachTable() -> ConfigTable? {
    guard case .table(let table) = kind else { return nil }
    kind = .table(ConfigTable())
    return table
  }
}

extension ConfigMember {
  fileprivate init(
    _ key: TOMLKey, path: ArraySlice<TOMLKey>, _ value: ConfigValue, isLine: Bool
  ) {
    let start = path.first?.range.lowerBound ?? key.range.lowerBound
    self.init(
      name: key.name, key: start..<key.range.upperBound, lastKey: key.range, value: value,
      isLine: isLine)
  }
}
