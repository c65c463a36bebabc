/// In what the JSON of `Codable` values may differ. Members are always sorted by name, so that equal values
/// are equal bytes.
public struct JSONCodingRules: Sendable {
  /// A member that is nil is there as a null; otherwise it is left out.
  public var writesNil: Bool
  /// A `Double` without a fraction is written without `.0`.
  public var shortensWholeDoubles: Bool
  /// Infinities and NaN are written and read as texts; otherwise they are an `EncodingError`.
  public var permitsNonFinite: Bool
  /// Values that aren't written as their own `encode(to:)` would.
  public var encodeSpecial: (@Sendable (any Encodable) -> JSON?)?
  /// Values that aren't read by their own `init(from:)`; nil for all others.
  public var decodeSpecial:
    (@Sendable (any Decodable.Type, JSON) throws(JSONMisfit) -> (any Decodable)?)?

  public init(
    writesNil: Bool, shortensWholeDoubles: Bool, permitsNonFinite: Bool,
    encodeSpecial: (@Sendable (any Encodable) -> JSON?)? = nil,
    decodeSpecial: (
      @Sendable (any Decodable.Type, JSON) throws(JSONMisfit) -> (any Decodable)?
    )? = nil
  ) {
    self.writesNil = writesNil
    self.shortensWholeDoubles = shortensWholeDoubles
    self.permitsNonFinite = permitsNonFinite
    self.encodeSpecial = encodeSpecial
    self.decodeSpecial = decodeSpecial
  }

  /// What other programs read: JSON as Foundation's encoder writes it, with its keys sorted and its slashes
  /// plain.
  public static let document = JSONCodingRules(
    writesNil: false, shortensWholeDoubles: true, permitsNonFinite: false)
}

/// Why a JSON value isn't the value that was asked for. Of a number, it is the underlying error of a
/// `DecodingError.dataCorrupted`.
public enum JSONMisfit: Error {
  case wrongType
  case outOfRange
}

/// Where a value is, from the innermost key outwards; most are never asked for it.
final class JSONPath: Sendable {
  private let outer: JSONPath?
  private let key: any CodingKey

  init(_ outer: JSONPath?, _ key: any CodingKey) {
    self.outer = outer
    self.key = key
  }

  static func keys(_ path: JSONPath?) -> [any CodingKey] {
    var keys: [any CodingKey] = []
    var step = path
    while let current = step {
      keys.append(current.key)
      step = current.outer
    }
    return keys.reversed()
  }
}

/// A place in a list.
struct JSONIndex: CodingKey {
  let index: Int
  init(_ index: Int) { self.index = index }
  init(intValue: Int) { index = intValue }
  init?(stringValue: String) { return nil }
  var intValue: Int? { index }
  var stringValue: String { "Index \(index)" }
}

struct JSONSuperKey: CodingKey {
  init() {}
  init?(intValue: Int) { return nil }
  init?(stringValue: String) { return nil }
  var intValue: Int? { nil }
  var stringValue: String { "super" }
}

extension [any CodingKey] {
  /// `launch.command.0`
  public var dotted: String {
    map { key in key.intValue.map(String.init) ?? key.stringValue }.joined(separator: ".")
  }
}
