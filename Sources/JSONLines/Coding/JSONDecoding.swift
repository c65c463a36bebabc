extension JSON {
  /// Decodes a value from this JSON. Members that the type doesn't know are ignored.
  ///
  /// - Throws: `DecodingError` with the coding path that doesn't fit, and the errors of the type's
  ///   own `init`.
  public func decode<Value: Decodable>(
    _ type: Value.Type, by rules: JSONCodingRules
  ) throws -> Value {
    try ValueDecoder(json: self, rules: rules, path: nil).decode(type)
  }
}

private struct ValueDecoder: Decoder {
  let json: JSON
  let rules: JSONCodingRules
  let path: JSONPath?
  var codingPath: [any CodingKey] { JSONPath.keys(path) }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    if let special = rules.decodeSpecial {
      do throws(JSONMisfit) {
        if let value = try special(type, json) as? Value { return value }
      } catch { throw explain(error, type) }
    }
    return try Value(from: self)
  }

  func scalar<Value: JSONScalar>(_ type: Value.Type) throws -> Value {
    do throws(JSONMisfit) { return try Value.read(json, rules) } catch {
      throw explain(error, type)
    }
  }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    guard case .object(let members) = json else { throw explain(.wrongType, [String: Any].self) }
    return KeyedDecodingContainer(KeyedMembers(decoder: self, members: members))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    guard let values = json.elements else { throw explain(.wrongType, [Any].self) }
    return ListElements(decoder: self, values: values)
  }

  func singleValueContainer() -> any SingleValueDecodingContainer { SingleValue(decoder: self) }

  func nested(_ json: JSON, at key: any CodingKey) -> ValueDecoder {
    ValueDecoder(json: json, rules: rules, path: JSONPath(path, key))
  }

  func explain(_ misfit: JSONMisfit, _ type: Any.Type) -> DecodingError {
    switch misfit {
    case .outOfRange:
      .dataCorrupted(
        DecodingError.Context(
          codingPath: codingPath, debugDescription: "The number isn't in the range of \(type).",
          underlyingError: misfit))
    case .wrongType where json == .null:
      .valueNotFound(
        type, DecodingError.Context(codingPath: codingPath, debugDescription: "It is null."))
    case .wrongType:
      .typeMismatch(
        type, DecodingError.Context(codingPath: codingPath, debugDescription: "It is no \(type)."))
    }
  }
}

private struct KeyedMembers<Key: CodingKey>: KeyedDecodingContainerProtocol {
  private let decoder: ValueDecoder
  private let members: [JSON.Member]
  /// The indexes of the members by name. They exist only for objects with many members, where a
  /// linear search would be slow.
  private let indexes: [String: Int]?

  init(decoder: ValueDecoder, members: [JSON.Member]) {
    self.decoder = decoder
    self.members = members
    indexes =
      members.count < 16
      ? nil : Dictionary(members.enumerated().map { ($1.name, $0) }) { first, _ in first }
  }

  var codingPath: [any CodingKey] { decoder.codingPath }
  var allKeys: [Key] { members.compactMap { Key(stringValue: $0.name) } }
  func contains(_ key: Key) -> Bool { find(key) != nil }

  private func find(_ key: any CodingKey) -> JSON? {
    let name = key.stringValue
    if let indexes { return indexes[name].map { members[$0].value } }
    return members.first { $0.name == name }?.value
  }

  private func json(_ key: any CodingKey) throws -> JSON {
    guard let json = find(key) else {
      throw DecodingError.keyNotFound(
        key,
        DecodingError.Context(codingPath: codingPath, debugDescription: "The member is missing."))
    }
    return json
  }

  private func nested(_ key: any CodingKey) throws -> ValueDecoder {
    decoder.nested(try json(key), at: key)
  }

  func decodeNil(forKey key: Key) throws -> Bool { try json(key) == .null }
  func decode<Value: JSONScalar>(_ type: Value.Type, forKey key: Key) throws -> Value {
    let json = try json(key)
    do throws(JSONMisfit) { return try Value.read(json, decoder.rules) } catch {
      throw decoder.nested(json, at: key).explain(error, type)
    }
  }
  func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
    try nested(key).decode(type)
  }
  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<Nested> { try nested(key).container(keyedBy: type) }
  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try nested(key).unkeyedContainer()
  }
  func superDecoder() throws -> any Decoder { superDecoder(at: JSONSuperKey()) }
  func superDecoder(forKey key: Key) throws -> any Decoder { superDecoder(at: key) }

  /// Returns the decoder of a superclass. It decodes a null if the superclass has encoded nothing.
  private func superDecoder(at key: any CodingKey) -> ValueDecoder {
    decoder.nested(find(key) ?? .null, at: key)
  }
}

private struct ListElements: UnkeyedDecodingContainer {
  let decoder: ValueDecoder
  let values: [JSON]
  var currentIndex = 0

  var codingPath: [any CodingKey] { decoder.codingPath }
  var count: Int? { values.count }
  var isAtEnd: Bool { currentIndex >= values.count }

  /// Reads the next element. It counts as read only if that succeeds.
  private mutating func next<Value>(
    _ type: Any.Type, _ decode: (ValueDecoder) throws -> Value
  ) throws -> Value {
    let index = JSONIndex(currentIndex)
    guard !isAtEnd else {
      throw DecodingError.valueNotFound(
        type,
        DecodingError.Context(
          codingPath: codingPath + [index], debugDescription: "The list is too short."))
    }
    let value = try decode(decoder.nested(values[currentIndex], at: index))
    currentIndex += 1
    return value
  }

  mutating func decodeNil() throws -> Bool {
    let isNil = try next(Never.self) { $0.json == .null }
    // An element that isn't null is still to be read.
    if !isNil { currentIndex -= 1 }
    return isNil
  }
  mutating func decode<Value: JSONScalar>(_ type: Value.Type) throws -> Value {
    try next(type) { try $0.scalar(type) }
  }
  mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    try next(type) { try $0.decode(type) }
  }
  mutating func nestedContainer<Key: CodingKey>(
    keyedBy type: Key.Type
  ) throws -> KeyedDecodingContainer<Key> {
    try next([String: Any].self) { try $0.container(keyedBy: type) }
  }
  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    try next([Any].self) { try $0.unkeyedContainer() }
  }
  mutating func superDecoder() throws -> any Decoder { try next((any Decoder).self) { $0 } }
}

private struct SingleValue: SingleValueDecodingContainer {
  let decoder: ValueDecoder
  var codingPath: [any CodingKey] { decoder.codingPath }

  func decodeNil() -> Bool { decoder.json == .null }
  func decode<Value: JSONScalar>(_ type: Value.Type) throws -> Value { try decoder.scalar(type) }
  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try decoder.decode(type) }
}
