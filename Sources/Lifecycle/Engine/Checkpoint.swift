import Policy

// The whole engine can be written and read back (`Codable`), so that a journal's segment can begin with
// the engine as it was. The conformances are synthesized on purpose: a new field of the engine is in
// the checkpoint automatically, and a new type doesn't compile until it is `Codable` too.

extension WorkerID: CodingKeyRepresentable {
  /// So that dictionaries by worker are written as objects.
  public var codingKey: any CodingKey { NameKey(stringValue: name) }

  public init?<Key: CodingKey>(codingKey: Key) { self.init(codingKey.stringValue) }

  /// Decodes the name alone.
  public init(from decoder: any Decoder) throws {
    self.init(try decoder.singleValueContainer().decode(String.self))
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(name)
  }

  private struct NameKey: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }
}

extension WorkerTable: Equatable {
  /// Derived data follows from the records.
  static func == (left: WorkerTable, right: WorkerTable) -> Bool { left.elementsEqual(right) }
}
