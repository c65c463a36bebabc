import JSONLines
import Policy

extension JSON {
  /// - Throws: `JournalMismatch`, with the place in the tree that doesn't fit.
  public func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    try TreeDecoder.decode(type, self, at: "")
  }
}

/// A record, or a part of one, isn't what its place demands: written by another version.
public struct JournalMismatch: Error, Hashable, Sendable, CustomStringConvertible {
  public var description: String
  init(_ what: String, at path: String) {
    description = path.isEmpty ? what : "`\(path.dropFirst())` \(what)"
  }
  init(_ description: String) { self.description = description }
}

private struct TreeDecoder: Decoder {
  let tree: JSON
  let path: String
  let codingPath: [any CodingKey] = []
  let userInfo: [CodingUserInfoKey: Any] = [:]

  static func decode<Value: Decodable>(
    _ type: Value.Type, _ tree: JSON, at path: String
  ) throws -> Value {
    let special: (any Sendable)?
    switch type {
    case is Duration.Type: special = try duration(tree, path)
    case is ByteCount.Type: special = ByteCount(try integer(tree, path))
    case is Instant.Type: special = Instant(nanoseconds: try integer(tree, path))
    default: special = nil
    }
    if let value = special as? Value { return value }
    return try Value(from: TreeDecoder(tree: tree, path: path))
  }

  static func integer(_ tree: JSON, _ path: String) throws -> Int64 {
    guard let value = tree.integer else { throw JournalMismatch("isn't a whole number", at: path) }
    return value
  }

  private static func duration(_ tree: JSON, _ path: String) throws -> Duration {
    if let parts = tree.elements, parts.count == 2 {
      return Duration(
        secondsComponent: try integer(parts[0], path),
        attosecondsComponent: try integer(parts[1], path))
    }
    return .nanoseconds(try integer(tree, path))
  }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    guard case .object(let members) = tree else {
      throw JournalMismatch("isn't an object", at: path)
    }
    return KeyedDecodingContainer(KeyedBranches(members: members, path: path))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    guard let values = tree.elements else { throw JournalMismatch("isn't a list", at: path) }
    return ListBranches(values: values, path: path)
  }

  func singleValueContainer() -> any SingleValueDecodingContainer {
    Leaf(tree: tree, path: path)
  }
}

private func unused(_ what: String) -> Never { preconditionFailure("\(what) isn't used here") }

private struct KeyedBranches<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let members: [JSON.Member]
  let path: String
  let codingPath: [any CodingKey] = []

  var allKeys: [Key] { members.compactMap { Key(stringValue: $0.name) } }
  func contains(_ key: Key) -> Bool { members.contains { $0.name == key.stringValue } }

  private func tree(_ key: Key) throws -> JSON {
    guard let member = members.first(where: { $0.name == key.stringValue }) else {
      throw JournalMismatch("is missing", at: below(key))
    }
    return member.value
  }
  private func below(_ key: Key) -> String { "\(path).\(key.stringValue)" }

  func decodeNil(forKey key: Key) throws -> Bool { try tree(key) == .null }
  func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
    try TreeDecoder.decode(type, try tree(key), at: below(key))
  }
  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<Nested> {
    try TreeDecoder(tree: try tree(key), path: below(key)).container(keyedBy: type)
  }
  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    unused("a nested list")
  }
  func superDecoder() throws -> any Decoder { unused("a superclass") }
  func superDecoder(forKey key: Key) throws -> any Decoder { unused("a superclass") }
}

private struct ListBranches: UnkeyedDecodingContainer {
  let values: [JSON]
  let path: String
  let codingPath: [any CodingKey] = []
  var currentIndex = 0

  init(values: [JSON], path: String) {
    self.values = values
    self.path = path
  }

  var count: Int? { values.count }
  var isAtEnd: Bool { currentIndex >= values.count }

  mutating func decodeNil() throws -> Bool {
    guard !isAtEnd, values[currentIndex] == .null else { return false }
    currentIndex += 1
    return true
  }
  mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    guard !isAtEnd else { throw JournalMismatch("is too short", at: path) }
    defer { currentIndex += 1 }
    return try TreeDecoder.decode(type, values[currentIndex], at: "\(path).\(currentIndex)")
  }
  mutating func nestedContainer<Key: CodingKey>(
    keyedBy type: Key.Type
  ) throws -> KeyedDecodingContainer<Key> { unused("a nested container") }
  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer { unused("a list") }
  mutating func superDecoder() throws -> any Decoder { unused("a superclass") }
}

private struct Leaf: SingleValueDecodingContainer {
  let tree: JSON
  let path: String
  let codingPath: [any CodingKey] = []

  func decodeNil() -> Bool { tree == .null }
  func decode(_ type: Bool.Type) throws -> Bool {
    guard case .bool(let value) = tree else { throw JournalMismatch("isn't a truth", at: path) }
    return value
  }
  func decode(_ type: String.Type) throws -> String {
    guard let value = tree.text else { throw JournalMismatch("isn't a text", at: path) }
    return value
  }
  func decode(_ type: Double.Type) throws -> Double {
    switch tree {
    case .double(let value): return value
    case .int(let value): return Double(value)
    case .string(let text):
      if let value = Double(text) { return value }
    default: break
    }
    throw JournalMismatch("isn't a number", at: path)
  }
  func decode(_ type: Float.Type) throws -> Float { Float(try decode(Double.self)) }
  func decode(_ type: Int.Type) throws -> Int { try whole() }
  func decode(_ type: Int8.Type) throws -> Int8 { try whole() }
  func decode(_ type: Int16.Type) throws -> Int16 { try whole() }
  func decode(_ type: Int32.Type) throws -> Int32 { try whole() }
  func decode(_ type: Int64.Type) throws -> Int64 { try whole() }
  func decode(_ type: UInt.Type) throws -> UInt { try whole() }
  func decode(_ type: UInt8.Type) throws -> UInt8 { try whole() }
  func decode(_ type: UInt16.Type) throws -> UInt16 { try whole() }
  func decode(_ type: UInt32.Type) throws -> UInt32 { try whole() }
  func decode(_ type: UInt64.Type) throws -> UInt64 { try whole() }
  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    try TreeDecoder.decode(type, tree, at: path)
  }

  private func whole<Number: FixedWidthInteger>() throws -> Number {
    let value = try TreeDecoder.integer(tree, path)
    // 64 bits without a sign were written as they are.
    if Number.bitWidth == 64 { return Number(truncatingIfNeeded: value) }
    guard let number = Number(exactly: value) else {
      throw JournalMismatch("is out of range", at: path)
    }
    return number
  }
}
