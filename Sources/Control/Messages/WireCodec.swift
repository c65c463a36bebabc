import JSONLines

/// Converts messages to JSON and back: one object per line, with sorted keys, so that equal values
/// are equal bytes.
public enum WireCodec {
  /// The maximum length of a response in bytes, without its line end: 8 MiB. The status of one
  /// worker needs about 1 KB.
  public static let longestAnswer = 8 << 20

  /// The line for a value, with its LF. Throws if the value is too long or can't be encoded.
  ///
  /// - Parameter maximum: the maximum number of bytes without the LF that the peer accepts. It is 1
  ///   MiB for a request.
  public static func line(
    for value: some Encodable, atMost maximum: Int = LineFramer.defaultMaximumLength
  ) throws(WireError) -> [UInt8] {
    var bytes = try json(for: value)
    guard bytes.count <= maximum else { throw .tooLong(bytes: bytes.count, maximum: maximum) }
    bytes.append(UInt8(ascii: "\n"))
    return bytes
  }

  /// The JSON for a value, on one line and without a line end. `--json` prints it.
  public static func json(for value: some Encodable) throws(WireError) -> [UInt8] {
    do {
      return escapingControls(in: try JSON(encoding: value, by: .document).line)
    } catch {
      throw .unencodable(explain(error))
    }
  }

  /// The value of a line without its end. Unknown keys are ignored, so that a newer peer may send
  /// more.
  public static func decode<Value: Decodable>(
    _ type: Value.Type, from line: [UInt8]
  ) throws(WireError) -> Value {
    guard let json = JSON(line) else { throw .malformed(invalid) }
    do {
      return try json.decode(type, by: .document)
    } catch {
      throw .malformed(explain(error))
    }
  }

  /// The id of a request that can't be decoded completely (an unknown verb, a missing field), so
  /// that the client can match the refusal with it.
  public static func requestID(in line: [UInt8]) -> UInt64? {
    struct Identified: Decodable { var id: UInt64 }
    // It is nil if the line has no id.
    return try? decode(Identified.self, from: line).id
  }

  private static let invalid = "not valid JSON, or a number is out of range"

  private static func explain(_ error: any Error) -> String {
    switch error {
    case DecodingError.typeMismatch(_, let context) where context.codingPath.isEmpty,
      DecodingError.valueNotFound(_, let context) where context.codingPath.isEmpty:
      "not a JSON object"
    case DecodingError.keyNotFound(let key, let context):
      "`\((context.codingPath + [key]).dotted)` is missing"
    case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context):
      "`\(context.codingPath.dotted)` has the wrong type"
    case DecodingError.dataCorrupted(let context) where context.underlyingError is JSONMisfit:
      invalid
    case DecodingError.dataCorrupted(let context):
      "`\(context.codingPath.dotted)` has an unknown value"
    case EncodingError.invalidValue(let value, let context):
      "`\(context.codingPath.dotted)` can't be \(value)"
    default: "\(error)"
    }
  }
}

/// The reason why a value can't be encoded, or a line can't be decoded.
public enum WireError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The problem of the line, as a clause.
  case malformed(String)
  case unencodable(String)
  case tooLong(bytes: Int, maximum: Int)

  public var description: String {
    switch self {
    case .malformed(let what): what
    case .unencodable(let what): what
    case .tooLong(let bytes, let maximum):
      "the message has \(bytes) bytes, more than the limit of \(maximum)"
    }
  }
}
