import Policy

/// Makes names of workers from those of containers.
enum WorkerNaming {
  private static let longest = NameRule.longest

  /// The nearest valid name.
  static func valid(_ name: String, _ id: String) -> String {
    var bytes = name.utf8.map { NameRule.allows($0) ? $0 : UInt8(ascii: "-") }
    bytes = Array(bytes.drop { !NameRule.canBeFirst($0) }.prefix(longest))
    return bytes.isEmpty
      ? with(suffix: id, of: "container") : String(decoding: bytes, as: UTF8.self)
  }

  /// `web`, or `web-3f2a8b` where another worker has that name.
  static func unique(_ name: String, _ id: String, taken: Set<String>) -> String {
    if !taken.contains(name) { return name }
    for length in [6, 12, 24] {
      let longer = with(suffix: id, of: name, length)
      if !taken.contains(longer) { return longer }
    }
    var number = 2
    while taken.contains("\(name.prefix(50))-\(number)") { number += 1 }
    return "\(name.prefix(50))-\(number)"
  }

  private static func with(suffix id: String, of name: String, _ length: Int = 12) -> String {
    let suffix = id.utf8.filter { NameRule.allows($0) }.prefix(length)
    let head = name.utf8.prefix(longest - 1 - length)
    return String(decoding: head, as: UTF8.self) + "-" + String(decoding: suffix, as: UTF8.self)
  }
}
