import Policy

/// What a shed request achieved. Both footprints were measured.
public struct ShedRecord: Codable, Hashable, Sendable {
  public var kind: Directive.ShedKind
  public var at: Instant
  /// The footprint before the request.
  public var before: ByteCount
  /// The footprint after the answer or the deadline.
  public var after: ByteCount
  /// Whether the answer came in time.
  public var answered: Bool
}

/// Memory warnings that a worker answered in this run without freeing memory. The count is dropped
/// when a request frees some.
public struct FruitlessWarnings: Codable, Hashable, Sendable {
  public var count: Int
  public var last: Instant

  /// A smaller change doesn't count: a program's footprint varies by as much while it answers.
  static let minYield = ByteCount.kilobytes(64)
}
