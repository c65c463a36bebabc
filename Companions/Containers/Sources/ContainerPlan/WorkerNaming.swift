/// Names of workers: 1 to 64 letters, digits, `-`, `_` and `.`; neither `-` nor `.` comes first.
public enum WorkerNaming {
  private static let longest = 64

  public static func isValid(_ name: String) -> Bool {
    (1...longest).contains(name.utf8.count) && name.utf8.allSatisfy(isAllowed)
      && name.utf8.first.map(canBeFirst) == true
  }

  private static func canBeFirst(_ byte: UInt8) -> Bool {
    byte != UInt8(ascii: "-") && byte != UInt8(ascii: ".")
  }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
      UInt8(ascii: "."):
      true
    default: false
    }
  }

  /// The nearest valid name.
  static func valid(_ name: String, _ id: String) -> String {
    var bytes = name.utf8.map { isAllowed($0) ? $0 : UInt8(ascii: "-") }
    bytes = Array(bytes.drop { !canBeFirst($0) }.prefix(longest))
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
    let suffix = id.utf8.filter { isAllowed($0) }.prefix(length)
    let head = name.utf8.prefix(longest - 1 - length)
    return String(decoding: head, as: UTF8.self) + "-" + String(decoding: suffix, as: UTF8.self)
  }
}
