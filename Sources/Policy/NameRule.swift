/// The rule for the names of workers, instances and policies. A name becomes the name of a file and
/// an argument of commands.
public enum NameRule {
  /// The longest name, in bytes.
  public static let longest = 64
  /// The rule as text for people.
  public static let text =
    "1 to 64 of the letters a–z and A–Z, digits, `-`, `_` and `.`, no `.` or `-` first"
  /// The rule as a regular expression, for schemas. It matches the names that `allows` permits.
  public static let pattern = "^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$"

  /// Whether a name is valid.
  public static func allows(_ name: String) -> Bool {
    (1...longest).contains(name.utf8.count) && name.utf8.allSatisfy(allows)
      && name.utf8.first.map(canBeFirst) == true
  }

  /// Whether a byte may be in a name.
  public static func allows(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
      UInt8(ascii: "."):
      true
    default: false
    }
  }

  /// Whether a name may begin with this byte, which must be one that `allows` permits.
  public static func canBeFirst(_ byte: UInt8) -> Bool {
    byte != UInt8(ascii: "-") && byte != UInt8(ascii: ".")
  }
}
