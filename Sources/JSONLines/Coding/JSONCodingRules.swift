/// The options for the JSON of `Codable` values. Members are always sorted by name, so that equal
/// values give equal bytes.
public struct JSONCodingRules: Sendable {
  /// If true, a member that is nil is written as null; otherwise it is left out.
  public var writesNil: Bool
  /// If true, a `Double` without a fraction is written without `.0`.
  public var shortensWholeDoubles: Bool
  /// If true, infinities and NaN are written and read as strings; otherwise they are an
  /// `EncodingError`.
  public var permitsNonFinite: Bool
  /// Returns the JSON of a value for which this function is used instead of its own `encode(to:)`;
  /// nil for all other values.
  public var encodeSpecial: (@Sendable (any Encodable) -> JSON?)?
  /// Returns a value for which this function is used instead of its own `init(from:)`; nil for all
  /// other types.
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

  /// The rules for documents that other programs read: JSON as Foundation's encoder writes it, with
  /// sorted keys and unescaped slashes.
  public static let document = JSONCodingRules(
    writesNil: false, shortensWholeDoubles: true, permitsNonFinite: false)
}

/// The reason why a JSON value doesn't fit the requested type. For a number, it is the underlying
/// error of a `DecodingError.dataCorrupted`.
public enum JSONMisfit: Error {
  case wrongType
  case outOfRange
}

/// The path of a value in a document, from the innermost key outwards. It is made into an array
/// only when it is used.
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

/// The index of a value in a list, as a coding key.
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
  /// The path as text, such as `launch.command.0`.
  public var dotted: String {
    map { key in key.intValue.map(String.init) ?? key.stringValue }.joined(separator: ".")
  }
}
