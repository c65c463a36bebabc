extension JSON {
  /// Encodes a value as JSON.
  ///
  /// - Throws: `EncodingError` for a number that JSON can't represent, and the errors of the
  ///   value's own `encode`.
  public init(encoding value: some Encodable, by rules: JSONCodingRules) throws {
    guard let json = try EncodingNode.Entry(value, rules: rules, path: nil).json else {
      throw EncodingError.invalidValue(
        value, EncodingError.Context(codingPath: [], debugDescription: "It encodes nothing."))
    }
    self = json
  }
}

/// The JSON that a value has encoded so far. Several containers may write to one object.
private final class EncodingNode {
  enum Entry {
    case json(JSON)
    case node(EncodingNode)

    init(_ value: some Encodable, rules: JSONCodingRules, path: JSONPath?) throws {
      if let special = rules.encodeSpecial?(value) {
        self = .json(special)
      } else {
        let node = EncodingNode()
        try value.encode(to: NodeEncoder(node: node, rules: rules, path: path))
        self = .node(node)
      }
    }

    /// The JSON of the entry. nil: nothing was encoded.
    var json: JSON? {
      switch self {
      case .json(let json): json
      case .node(let node): node.json
      }
    }
  }

  private var single: Entry?
  private var list: [Entry]?
  private var members: [String: Entry]?

  var count: Int { list?.count ?? 0 }

  func beginObject() {
    precondition(single == nil && list == nil, "a value encodes itself as an object and as another")
    if members == nil { members = [:] }
  }

  func beginList() {
    precondition(single == nil && members == nil, "a value encodes itself as a list and as another")
    if list == nil { list = [] }
  }

  func set(_ entry: Entry) {
    precondition(single == nil && list == nil && members == nil, "a value encodes itself twice")
    single = entry
  }

  func set(_ name: String, _ entry: Entry) { members?[name] = entry }
  func append(_ entry: Entry) { list?.append(entry) }

  private var json: JSON? {
    if let list { return .array(list.map(Self.nested)) }
    guard let members else { return single?.json }
    // The names are compared by code units: `<` would compare by canonical equivalence.
    let sorted = members.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    return .object(sorted.map { JSON.Member($0.key, Self.nested($0.value)) })
  }

  private static func nested(_ entry: Entry) -> JSON { entry.json ?? .object([]) }
}

private struct NodeEncoder: Encoder {
  let node: EncodingNode
  let rules: JSONCodingRules
  let path: JSONPath?
  var codingPath: [any CodingKey] { JSONPath.keys(path) }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    node.beginObject()
    return KeyedEncodingContainer(KeyedNode(encoder: self))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    node.beginList()
    return ListNode(encoder: self)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { SingleNode(encoder: self) }

  func scalar(
    _ value: some JSONScalar, at key: (any CodingKey)? = nil
  ) throws -> EncodingNode.Entry {
    guard let json = value.json(rules) else {
      throw EncodingError.invalidValue(
        value,
        EncodingError.Context(
          codingPath: codingPath + (key.map { [$0] } ?? []),
          debugDescription: "JSON has no word for it."))
    }
    return .json(json)
  }

  func nested(at key: any CodingKey, _ node: EncodingNode = EncodingNode()) -> NodeEncoder {
    NodeEncoder(node: node, rules: rules, path: JSONPath(path, key))
  }
}

private struct KeyedNode<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let encoder: NodeEncoder
  var codingPath: [any CodingKey] { encoder.codingPath }

  private func set(_ key: any CodingKey, _ entry: EncodingNode.Entry) {
    encoder.node.set(key.stringValue, entry)
  }

  mutating func encodeNil(forKey key: Key) throws { set(key, .json(.null)) }

  mutating func encode<Value: JSONScalar>(_ value: Value, forKey key: Key) throws {
    set(key, try encoder.scalar(value, at: key))
  }
  mutating func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
    set(key, try EncodingNode.Entry(value, rules: encoder.rules, path: JSONPath(encoder.path, key)))
  }

  mutating func encodeIfPresent<Value: Encodable>(_ value: Value?, forKey key: Key) throws {
    if let value {
      try encode(value, forKey: key)
    } else if encoder.rules.writesNil {
      try encodeNil(forKey: key)
    }
  }
  private mutating func orNil(_ value: (some JSONScalar)?, _ key: Key) throws {
    if let value {
      try encode(value, forKey: key)
    } else if encoder.rules.writesNil {
      try encodeNil(forKey: key)
    }
  }
  // The standard library declares one of these functions for each of its types, prefers it to a
  // generic one, and leaves out nil in all of them.
  mutating func encodeIfPresent(_ v: Bool?, forKey key: Key) throws { try orNil(v, key) }
  mutating func encodeIfPresent(_ v: String?, forKey key: Key) throws { try orNil(v, key) }
  mutating func encodeIfPresent(_ v: Double?, forKey key: Key) throws { try orNil(v, key) }
  mutating func encodeIfPresent(_ v: Float?, forKey key: Key) throws { try orNil(v, key) }
  mutating func encodeIfPresent(_ v: Int?, forKey key: Key) throws { try orNil(v, key) }
  mutating func encodeIfPresent(_ v: Int8?, forKey key: Key) throws { try orNil(v, key) }
  mutating func encodeIfPresent(_ v: Int16?, forKey key: Key) throws { try orNil(v, key) }
  mutating func encodeIfPresent(_ v: Int32?, forKey key: Key) throws { try orNil(v, key) }
  mutating func encodeIfPresent(_ v: Int64?, forKey key: Key) throws { try orNil(v, key) }
  mutating func encodeIfPresent(_ v: UInt?, forKey key: Key) throws { try orNil(v, key) }
  mutating func encodeIfPresent(_ v: UInt8?, forKey key: Key) throws { try orNil(v, key) }
  mutating func encodeIfPresent(_ v: UInt16?, forKey key: Key) throws { try orNil(v, key) }
  mutating func encodeIfPresent(_ v: UInt32?, forKey key: Key) throws { try orNil(v, key) }
  mutating func encodeIfPresent(_ v: UInt64?, forKey key: Key) throws { try orNil(v, key) }

  mutating func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) -> KeyedEncodingContainer<Nested> {
    superEncoder(at: key).container(keyedBy: type)
  }
  mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    superEncoder(at: key).unkeyedContainer()
  }
  mutating func superEncoder() -> any Encoder { superEncoder(at: JSONSuperKey()) }
  mutating func superEncoder(forKey key: Key) -> any Encoder { superEncoder(at: key) }

  private func superEncoder(at key: any CodingKey) -> NodeEncoder {
    let nested = encoder.nested(at: key)
    set(key, .node(nested.node))
    return nested
  }
}

private struct ListNode: UnkeyedEncodingContainer {
  let encoder: NodeEncoder
  var codingPath: [any CodingKey] { encoder.codingPath }
  var count: Int { encoder.node.count }
  private var index: JSONIndex { JSONIndex(count) }

  mutating func encodeNil() throws { encoder.node.append(.json(.null)) }
  mutating func encode<Value: JSONScalar>(_ value: Value) throws {
    encoder.node.append(try encoder.scalar(value, at: index))
  }
  mutating func encode<Value: Encodable>(_ value: Value) throws {
    encoder.node.append(
      try EncodingNode.Entry(value, rules: encoder.rules, path: JSONPath(encoder.path, index)))
  }

  mutating func nestedContainer<Key: CodingKey>(
    keyedBy type: Key.Type
  ) -> KeyedEncodingContainer<Key> { nestedEncoder().container(keyedBy: type) }
  mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
    nestedEncoder().unkeyedContainer()
  }
  mutating func superEncoder() -> any Encoder { nestedEncoder() }

  private func nestedEncoder() -> NodeEncoder {
    let nested = encoder.nested(at: index)
    encoder.node.append(.node(nested.node))
    return nested
  }
}

private struct SingleNode: SingleValueEncodingContainer {
  let encoder: NodeEncoder
  var codingPath: [any CodingKey] { encoder.codingPath }

  mutating func encodeNil() throws { encoder.node.set(.json(.null)) }
  mutating func encode<Value: JSONScalar>(_ value: Value) throws {
    encoder.node.set(try encoder.scalar(value))
  }
  mutating func encode<Value: Encodable>(_ value: Value) throws {
    encoder.node.set(try EncodingNode.Entry(value, rules: encoder.rules, path: encoder.path))
  }
}
