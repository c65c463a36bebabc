/// A value of a host's configuration, and the range of its text in the file.
struct ConfigValue: Sendable {
  enum Kind: Sendable {
    case text(String)
    case list([ConfigValue])
    case table(ConfigTable)
    /// A number, a truth value, null or a date, as it is written.
    case other(String)
  }

  /// How a table or list was written. In a TOML file this decides whether later lines may add to
  /// it. All values of a JSON file are `value`. In a YAML file a collection without brackets is
  /// `block`.
  enum Origin: Sendable { case value, header, implied, dotted, tables, block }

  var kind: Kind
  /// The bytes of the value. For a TOML table with headers they are those of its first header.
  var range: Range<Int>
  var origin = Origin.value

  var text: String? { if case .text(let text) = kind { text } else { nil } }
  var list: [ConfigValue]? { if case .list(let values) = kind { values } else { nil } }
  var table: ConfigTable? { if case .table(let table) = kind { table } else { nil } }
  var members: [ConfigMember]? { table?.members }

  subscript(name: String) -> ConfigValue? { member(name)?.value }

  func member(_ name: String) -> ConfigMember? {
    guard let table, let index = table.index(of: name) else { return nil }
    return table.members[index]
  }

  /// The value at a path. In a list, a component of the path is the `name` of a table in the list.
  subscript(path: [String]) -> ConfigValue? {
    var value: ConfigValue? = self
    for name in path { value = value?[name] ?? value?.list?.first { $0.isNamed(name) } }
    return value
  }

  func isNamed(_ name: String) -> Bool { self["name"]?.text == name }

  /// Returns whether the host would read the same from both values.
  func means(theSameAs other: ConfigValue) -> Bool {
    switch (kind, other.kind) {
    case (.text(let one), .text(let two)), (.other(let one), .other(let two)):
      // `==` of String compares by canonical equivalence, which hosts don't.
      one.utf8.elementsEqual(two.utf8)
    case (.list(let one), .list(let two)):
      one.count == two.count && zip(one, two).allSatisfy { $0.means(theSameAs: $1) }
    case (.table(let one), .table(let two)):
      one.members.count == two.members.count
        && zip(one.members, two.members).allSatisfy {
          $0.name.utf8.elementsEqual($1.name.utf8) && $0.value.means(theSameAs: $1.value)
        }
    default: false
    }
  }
}

/// The members of a table. A file may have many thousand servers, so an index finds a member by its
/// name.
struct ConfigTable: Sendable {
  private(set) var members: [ConfigMember] = []
  private var indices: [String: Int] = [:]

  init() {}

  init(_ members: some Sequence<ConfigMember>) {
    for member in members { append(member) }
  }

  func index(of name: String) -> Int? { indices[name] }

  mutating func append(_ member: ConfigMember) {
    indices[member.name] = members.count
    members.append(member)
  }

  subscript(index: Int) -> ConfigValue {
    get { members[index].value }
    // The value is changed in place: a large value isn't copied.
    _modify { yield &members[index].value }
  }
}

struct ConfigMember: Sendable {
  var name: String
  /// The key as it is written, with quotes. In a TOML file it is all of `a.b.name`.
  var key: Range<Int>
  /// The last component of the key.
  var lastKey: Range<Int>
  var value: ConfigValue
  /// True for a line of a TOML or YAML file, and false for a member between braces.
  var isLine = false
}

/// The reason why a file can't be parsed, and the position.
struct ConfigSyntaxError: Error, Hashable, Sendable {
  /// The position in bytes.
  var offset: Int
  var reason: String

  /// The line and the column of the position. Both count from 1, and a column is a Unicode scalar.
  func position(in bytes: [UInt8]) -> (line: Int, column: Int) {
    let before = bytes.prefix(offset)
    let start = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
    let skipsMark = start == 0 && bytes.starts(with: ConfigDocument.byteOrderMark)
    let column = String(decoding: before[start...], as: UTF8.self).unicodeScalars.count
    return (
      line: before.count { $0 == UInt8(ascii: "\n") } + 1, column: column + (skipsMark ? 0 : 1)
    )
  }
}

/// The byte that a letter after a backslash stands for, in JSON and in TOML; nil if the formats
/// differ or have no such escape.
func escapedByte(_ letter: UInt8) -> UInt8? {
  switch letter {
  case UInt8(ascii: "n"): 0x0A
  case UInt8(ascii: "r"): 0x0D
  case UInt8(ascii: "t"): 0x09
  case UInt8(ascii: "b"): 0x08
  case UInt8(ascii: "f"): 0x0C
  case UInt8(ascii: "\""), UInt8(ascii: "\\"): letter
  default: nil
  }
}
