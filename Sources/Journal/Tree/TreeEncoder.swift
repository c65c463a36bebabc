import JSONLines
import Policy

// `Codable` values as JSON trees, without Foundation. Equal values give equal trees: keys are
// sorted, and what is nil is there as a null, so that an overlay can tell it from what isn't said.

extension JSON {
  /// - Throws: what a type's own `encode` throws; those of the engine don't.
  public init(encoding value: some Encodable) throws { self = try TreeEncoder.encode(value) }
}

private final class TreeEncoder: Encoder {
  var tree = JSON.null
  let codingPath: [any CodingKey] = []
  let userInfo: [CodingUserInfoKey: Any] = [:]

  static func encode(_ value: some Encodable) throws -> JSON {
    switch value {
    case let value as Duration: return tree(value)
    case let value as ByteCount: return .int(value.bytes)
    case let value as Instant: return .int(value.nanoseconds)
    default:
      let encoder = TreeEncoder()
      try value.encode(to: encoder)
      return encoder.tree
    }
  }

  /// Nanoseconds, where that is exact.
  private static func tree(_ value: Duration) -> JSON {
    let (seconds, attoseconds) = value.components
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, overflows) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
    if !overflow, !overflows, attoseconds % 1_000_000_000 == 0 { return .int(sum) }
    return .array([.int(seconds), .int(attoseconds)])
  }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    KeyedEncodingContainer(KeyedTree(encoder: self))
  }
  func unkeyedContainer() -> any UnkeyedEncodingContainer { ListTree(encoder: self) }
  func singleValueContainer() -> any SingleValueEncodingContainer { SingleTree(encoder: self) }
}

/// A container that the standard library's calls can't reach here: no value of ours has a
/// superclass, or nests containers by hand.
private func unused(_ what: String) -> Never { preconditionFailure("\(what) isn't used here") }

/// The members are collected in place: the enums' synthesized code asks for a nested container for
/// each case's payload.
private final class Members {
  var values: [JSON.Member] = []
  let finish: (JSON) -> Void
  init(finish: @escaping (JSON) -> Void) {
    self.finish = finish
    finish(.object([]))
  }
  func set(_ name: String, _ value: JSON) {
    if let place = values.firstIndex(where: { $0.name >= name }) {
      if values[place].name == name {
        values[place].value = value
      } else {
        values.insert(JSON.Member(name, value), at: place)
      }
    } else {
      values.append(JSON.Member(name, value))
    }
    finish(.object(values))
  }
}

private struct KeyedTree<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let members: Members
  let codingPath: [any CodingKey] = []

  init(encoder: TreeEncoder) { members = Members { encoder.tree = $0 } }
  init(members: Members) { self.members = members }

  mutating func encodeNil(forKey key: Key) throws { members.set(key.stringValue, .null) }

  mutating func encode(_ value: some Encodable, forKey key: Key) throws {
    members.set(key.stringValue, try TreeEncoder.encode(value))
  }

  private mutating func encodeOrNull(_ value: (some Encodable)?, _ key: Key) throws {
    if let value { try encode(value, forKey: key) } else { try encodeNil(forKey: key) }
  }

  mutating func encodeIfPresent(_ value: (some Encodable)?, forKey key: Key) throws {
    try encodeOrNull(value, key)
  }
  // The standard library has one of these for each of its types, and leaves nil out in all.
  mutating func encodeIfPresent(_ v: Bool?, forKey key: Key) throws { try encodeOrNull(v, key) }
  mutating func encodeIfPresent(_ v: String?, forKey key: Key) throws { try encodeOrNull(v, key) }
  mutating func encodeIfPresent(_ v: Double?, forKey key: Key) throws { try encodeOrNull(v, key) }
  mutating func encodeIfPresent(_ v: Int?, forKey key: Key) throws { try encodeOrNull(v, key) }
  mutating func encodeIfPresent(_ v: Int32?, forKey key: Key) throws { try encodeOrNull(v, key) }
  mutating func encodeIfPresent(_ v: Int64?, forKey key: Key) throws { try encodeOrNull(v, key) }
  mutating func encodeIfPresent(_ v: UInt64?, forKey key: Key) throws { try encodeOrNull(v, key) }

  mutating func nestedContainer<Nested: CodingKey>(
    keyedBy keyType: Nested.Type, forKey key: Key
  ) -> KeyedEncodingContainer<Nested> {
    let name = key.stringValue
    return KeyedEncodingContainer(
      KeyedTree<Nested>(members: Members { [members] in members.set(name, $0) }))
  }
  mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    unused("a nested list")
  }
  mutating func superEncoder() -> any Encoder { unused("a superclass") }
  mutating func superEncoder(forKey key: Key) -> any Encoder { unused("a superclass") }
}

private struct ListTree: UnkeyedEncodingContainer {
  let encoder: TreeEncoder
  let codingPath: [any CodingKey] = []
  private var values: [JSON] = []
  var count: Int { values.count }

  init(encoder: TreeEncoder) {
    self.encoder = encoder
    encoder.tree = .array([])
  }

  private mutating func append(_ value: JSON) {
    values.append(value)
    encoder.tree = .array(values)
  }
  mutating func encodeNil() throws { append(.null) }
  mutating func encode(_ value: some Encodable) throws { append(try TreeEncoder.encode(value)) }
  mutating func nestedContainer<Key: CodingKey>(
    keyedBy keyType: Key.Type
  ) -> KeyedEncodingContainer<Key> { unused("a nested container") }
  mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { unused("a list") }
  mutating func superEncoder() -> any Encoder { unused("a superclass") }
}

private struct SingleTree: SingleValueEncodingContainer {
  let encoder: TreeEncoder
  let codingPath: [any CodingKey] = []

  mutating func encodeNil() throws { encoder.tree = .null }
  mutating func encode(_ value: Bool) throws { encoder.tree = .bool(value) }
  mutating func encode(_ value: String) throws { encoder.tree = .string(value) }
  mutating func encode(_ value: Double) throws { encoder.tree = .double(value) }
  mutating func encode(_ value: Float) throws { encoder.tree = .double(Double(value)) }
  mutating func encode(_ value: Int) throws { whole(value) }
  mutating func encode(_ value: Int8) throws { whole(value) }
  mutating func encode(_ value: Int16) throws { whole(value) }
  mutating func encode(_ value: Int32) throws { whole(value) }
  mutating func encode(_ value: Int64) throws { whole(value) }
  mutating func encode(_ value: UInt) throws { whole(value) }
  mutating func encode(_ value: UInt8) throws { whole(value) }
  mutating func encode(_ value: UInt16) throws { whole(value) }
  mutating func encode(_ value: UInt32) throws { whole(value) }
  mutating func encode(_ value: UInt64) throws { whole(value) }
  mutating func encode(_ value: some Encodable) throws {
    encoder.tree = try TreeEncoder.encode(value)
  }

  /// The bits: a request's id may have all 64 of them.
  private func whole(_ value: some FixedWidthInteger) {
    encoder.tree = .int(Int64(truncatingIfNeeded: value))
  }
}
