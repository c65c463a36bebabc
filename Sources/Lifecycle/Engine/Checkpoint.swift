// The whole engine is `Codable`, so that a segment of the journal can begin with the engine as it
// was. The conformances are synthesized on purpose: a new field of the engine is in the checkpoint
// automatically, and a new type doesn't compile until it is `Codable` too.

extension WorkerID: CodingKeyRepresentable {
  /// Dictionaries with workers as keys are written as JSON objects.
  public var codingKey: any CodingKey { NameKey(stringValue: name) }

  public init?<Key: CodingKey>(codingKey: Key) { self.init(codingKey.stringValue) }

  /// The coded form is the name alone.
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
  /// Only the records are compared; derived data follows from them.
  static func == (left: WorkerTable, right: WorkerTable) -> Bool { left.elementsEqual(right) }
}
