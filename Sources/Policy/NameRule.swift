/// The rule for the names of workers, instances and policies: a name becomes a file's name and a word of a command.
public enum NameRule {
  /// In bytes.
  public static let longest = 64
  /// For people.
  public static let text =
    "1 to 64 of the letters a–z and A–Z, digits, `-`, `_` and `.`, no `.` or `-` first"
  /// The same rule as `allows`, for schemas.
  public static let pattern = "^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$"

  public static func allows(_ name: String) -> Bool {
    (1...longest).contains(name.utf8.count) && name.utf8.allSatisfy(allows)
      && name.utf8.first.map(canBeFirst) == true
  }

  public static func allows(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
      UInt8(ascii: "."):
      true
    default: false
    }
  }

  /// Of a byte that is allowed.
  public static func canBeFirst(_ byte: UInt8) -> Bool {
    byte != UInt8(ascii: "-") && byte != UInt8(ascii: ".")
  }
}
