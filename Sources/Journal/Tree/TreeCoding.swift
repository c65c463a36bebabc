import JSONLines
import Policy

// These functions convert `Codable` values to and from the JSON of the journal. Equal values give
// equal trees. nil is written as null, so that an overlay can distinguish it from a missing member.

extension JSONCodingRules {
  static let journal = JSONCodingRules(
    writesNil: true, shortensWholeDoubles: false, permitsNonFinite: true,
    encodeSpecial: { value in
      switch value {
      case let value as Duration: json(value)
      case let value as ByteCount: .int(value.bytes)
      case let value as Instant: .int(value.nanoseconds)
      default: nil
      }
    },
    decodeSpecial: { type, json throws(JSONMisfit) in
      switch type {
      case is Duration.Type: try duration(json)
      case is ByteCount.Type: ByteCount(try integer(json))
      case is Instant.Type: Instant(nanoseconds: try integer(json))
      default: nil
      }
    })

  /// A duration in nanoseconds, if that is exact.
  private static func json(_ value: Duration) -> JSON {
    let (seconds, attoseconds) = value.components
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, overflows) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
    if !overflow, !overflows, attoseconds % 1_000_000_000 == 0 { return .int(sum) }
    return .array([.int(seconds), .int(attoseconds)])
  }

  private static func duration(_ json: JSON) throws(JSONMisfit) -> Duration {
    guard let components = json.elements, components.count == 2 else {
      return .nanoseconds(try integer(json))
    }
    return Duration(
      secondsComponent: try integer(components[0]), attosecondsComponent: try integer(components[1])
    )
  }

  private static func integer(_ json: JSON) throws(JSONMisfit) -> Int64 {
    guard let value = json.integer else { throw .wrongType }
    return value
  }
}

extension JSON {
  /// Encodes a value for the journal.
  ///
  /// - Throws: the errors of a type's own `encode`. The engine's types throw none.
  public init(encoding value: some Encodable) throws {
    try self.init(encoding: value, by: .journal)
  }

  /// Decodes a value from the journal.
  ///
  /// - Throws: `JournalMismatch` with the path in the tree that doesn't fit.
  public func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    do { return try decode(type, by: .journal) } catch let error as DecodingError {
      throw JournalMismatch(error)
    }
  }
}

/// The error of a record, or of a member of one, that doesn't have the expected form: another
/// version wrote it.
public struct JournalMismatch: Error, Hashable, Sendable, CustomStringConvertible {
  public var description: String

  init(_ what: String, at path: String) { description = path.isEmpty ? what : "`\(path)` \(what)" }
  init(_ description: String) { self.description = description }

  init(_ error: DecodingError) {
    switch error {
    case .keyNotFound(let key, let context):
      self.init("is missing", at: (context.codingPath + [key]).dotted)
    case .typeMismatch(let type, let context), .valueNotFound(let type, let context):
      self.init("isn't \(Self.name(of: type))", at: context.codingPath.dotted)
    case .dataCorrupted(let context) where context.underlyingError is JSONMisfit:
      self.init("is out of range", at: context.codingPath.dotted)
    case .dataCorrupted(let context):
      self.init("has a value that this version doesn't know", at: context.codingPath.dotted)
    @unknown default: self.init("\(error)")
    }
  }

  private static func name(of type: Any.Type) -> String {
    switch type {
    case is Bool.Type: "true or false"
    case is String.Type: "a text"
    case is Double.Type, is Float.Type: "a number"
    case is [String: Any].Type: "an object"
    case is [Any].Type: "a list"
    default: "a whole number"
    }
  }
}
