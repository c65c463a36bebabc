/// A JSON value (RFC 8259). Whole numbers of 64 bits stay exact, and members keep their order.
public enum JSON: Hashable, Sendable {
  case null
  case bool(Bool)
  case int(Int64)
  /// A whole number above `Int64.max`. Smaller ones are always `int`, so equal numbers are equal
  /// values.
  case unsigned(UInt64)
  case double(Double)
  case string(String)
  case array([JSON])
  case object([Member])

  public struct Member: Hashable, Sendable {
    public var name: String
    public var value: JSON
    public init(_ name: String, _ value: JSON) {
      self.name = name
      self.value = value
    }
  }

  /// The first member of that name. nil if there is none, or if this isn't an object.
  public subscript(name: String) -> JSON? {
    guard case .object(let members) = self else { return nil }
    return members.first { $0.name == name }?.value
  }

  /// The value of `int`; nil for every other number.
  public var integer: Int64? { if case .int(let value) = self { value } else { nil } }
  /// Any number, as the nearest `Double`.
  public var number: Double? {
    switch self {
    case .int(let value): Double(value)
    case .unsigned(let value): Double(value)
    case .double(let value): value
    default: nil
    }
  }
  /// The value of `string`; nil for everything else.
  public var text: String? { if case .string(let value) = self { value } else { nil } }
  /// The elements of an array; nil for everything else.
  public var elements: [JSON]? { if case .array(let value) = self { value } else { nil } }

  /// Replaces the member of that name, or adds one. It does nothing if this isn't an object.
  public mutating func set(_ name: String, _ value: JSON) {
    guard case .object(var members) = self else { return }
    // `self` releases its members here, so that they aren't copied for each change.
    self = .null
    if let index = members.firstIndex(where: { $0.name == name }) {
      members[index].value = value
    } else {
      members.append(Member(name, value))
    }
    self = .object(members)
  }

  /// The JSON on one line, without spaces, as UTF-8.
  public var line: [UInt8] {
    var bytes: [UInt8] = []
    write(to: &bytes)
    return bytes
  }

  /// Appends the JSON to `bytes` on one line, without spaces and without a line end.
  public func write(to bytes: inout [UInt8]) {
    switch self {
    case .null: bytes += "null".utf8
    case .bool(let value): bytes += (value ? "true" : "false").utf8
    case .int(let value): bytes += String(value).utf8
    case .unsigned(let value): bytes += String(value).utf8
    case .double(let value): Self.write(value, to: &bytes)
    case .string(let value): Self.write(value, to: &bytes)
    case .array(let values):
      bytes.append(UInt8(ascii: "["))
      for (index, value) in values.enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        value.write(to: &bytes)
      }
      bytes.append(UInt8(ascii: "]"))
    case .object(let members):
      bytes.append(UInt8(ascii: "{"))
      for (index, member) in members.enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        Self.write(member.name, to: &bytes)
        bytes.append(UInt8(ascii: ":"))
        member.value.write(to: &bytes)
      }
      bytes.append(UInt8(ascii: "}"))
    }
  }

  /// Writes the shortest text that reads back as the same number. JSON has no infinity. Such a
  /// number is written as a string, which the decoder reads as a number if its rules permit that.
  private static func write(_ value: Double, to bytes: inout [UInt8]) {
    if value == 0, value.sign == .minus {
      bytes += "-0".utf8
    } else {
      value.isFinite ? bytes += "\(value)".utf8 : write("\(value)", to: &bytes)
    }
  }

  private static func write(_ text: String, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "\""))
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""): bytes += "\\\"".utf8
      case UInt8(ascii: "\\"): bytes += "\\\\".utf8
      case UInt8(ascii: "\n"): bytes += "\\n".utf8
      case UInt8(ascii: "\r"): bytes += "\\r".utf8
      case UInt8(ascii: "\t"): bytes += "\\t".utf8
      case 0x08: bytes += "\\b".utf8
      case 0x0C: bytes += "\\f".utf8
      case 0..<0x20:
        bytes += "\\u00".utf8
        for digit in [byte >> 4, byte & 15] {
          bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
        }
      default: bytes.append(byte)
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }
}
