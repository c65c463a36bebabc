/// Writes a Protocol Buffers message. Values that are empty or 0 are left out, as the format
/// defines.
public struct ProtobufWriter: Sendable {
  public private(set) var bytes: [UInt8] = []

  public init() {}

  public init(_ write: (inout ProtobufWriter) -> Void) { write(&self) }

  public mutating func number(_ field: UInt64, _ value: UInt64) {
    if value == 0 { return }
    varint(field << 3)
    varint(value)
  }

  public mutating func text(_ field: UInt64, _ text: String) {
    if !text.isEmpty { append(field, Array(text.utf8)) }
  }

  /// Appends a message, even if it is empty: it is present then.
  public mutating func message(_ field: UInt64, _ write: (inout ProtobufWriter) -> Void) {
    append(field, ProtobufWriter(write).bytes)
  }

  public mutating func map(_ field: UInt64, _ entries: [String: String]) {
    for (key, value) in entries.sorted(by: { $0.key < $1.key }) {
      message(field) {
        $0.text(1, key)
        $0.text(2, value)
      }
    }
  }

  private mutating func append(_ field: UInt64, _ content: [UInt8]) {
    varint(field << 3 | 2)
    varint(UInt64(content.count))
    bytes += content
  }

  private mutating func varint(_ value: UInt64) {
    var value = value
    while value >= 0x80 {
      bytes.append(UInt8(value & 0x7F) | 0x80)
      value >>= 7
    }
    bytes.append(UInt8(value))
  }
}
