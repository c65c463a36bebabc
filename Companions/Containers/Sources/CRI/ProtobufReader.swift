/// Reads the fields of a Protocol Buffers message that CRI's messages have, and skips unknown
/// fields. The bytes are another program's, so no length is trusted.
struct ProtobufReader {
  enum Value {
    case number(UInt64)
    case bytes(ArraySlice<UInt8>)
  }

  struct Malformed: Error, Hashable, CustomStringConvertible {
    var description: String
  }

  private var remainder: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { remainder = bytes }

  /// Returns the next field; nil if the message has ended.
  mutating func next() throws(Malformed) -> (field: UInt64, value: Value)? {
    if remainder.isEmpty { return nil }
    let key = try varint()
    guard key >> 3 > 0 else { throw Malformed(description: "a field with the number 0") }
    switch key & 7 {
    case 0: return (key >> 3, .number(try varint()))
    case 1: return (key >> 3, .number(try fixed(8)))
    case 2: return (key >> 3, .bytes(try taken(try varint())))
    case 5: return (key >> 3, .number(try fixed(4)))
    case let kind: throw Malformed(description: "a field of kind \(kind)")
    }
  }

  private mutating func varint() throws(Malformed) -> UInt64 {
    var value: UInt64 = 0
    for position in 0..<10 {
      guard let byte = remainder.popFirst() else { throw Self.cut }
      // The tenth byte has room for one bit.
      if position == 9, byte > 1 { break }
      value |= UInt64(byte & 0x7F) << UInt64(7 * position)
      if byte < 0x80 { return value }
    }
    throw Malformed(description: "a number of more than 64 bits")
  }

  private mutating func fixed(_ count: UInt64) throws(Malformed) -> UInt64 {
    try taken(count).reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  private mutating func taken(_ count: UInt64) throws(Malformed) -> ArraySlice<UInt8> {
    guard count <= UInt64(remainder.count) else { throw Self.cut }
    defer { remainder = remainder.dropFirst(Int(count)) }
    return remainder.prefix(Int(count))
  }

  private static let cut = Malformed(description: "it ends within a field")
}

/// A message that is read field by field.
protocol ProtobufReadable: Sendable {
  init()
  /// Reads a field. An unknown field is ignored.
  mutating func read(_ field: UInt64, _ value: ProtobufReader.Value) throws(ProtobufReader
    .Malformed)
}

extension ProtobufReadable {
  init(_ bytes: ArraySlice<UInt8>) throws(ProtobufReader.Malformed) {
    self.init()
    var reader = ProtobufReader(bytes)
    while let (field, value) = try reader.next() { try read(field, value) }
  }
}

extension ProtobufReader.Value {
  /// The text; empty for any other value, which a newer version may send.
  var text: String {
    if case .bytes(let bytes) = self { String(decoding: bytes, as: UTF8.self) } else { "" }
  }

  var number: UInt64 { if case .number(let number) = self { number } else { 0 } }

  func message<Message: ProtobufReadable>(
    _ type: Message.Type
  ) throws(ProtobufReader.Malformed) -> Message {
    guard case .bytes(let bytes) = self else { return Message() }
    return try Message(bytes)
  }
}

/// An entry of a `map<string, string>`.
struct MapEntry: ProtobufReadable {
  var key = ""
  var value = ""

  mutating func read(_ field: UInt64, _ value: ProtobufReader.Value) {
    switch field {
    case 1: key = value.text
    case 2: self.value = value.text
    default: break
    }
  }
}
