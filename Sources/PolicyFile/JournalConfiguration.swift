import Policy

/// `journal:`. How much the daemon keeps of what happened, for `events`, `report` and `replay`.
public struct JournalConfiguration: Hashable, Sendable {
  public var enabled: Bool
  /// A directory; `nil`: `journal` in the state directory.
  public var path: String?
  /// A segment of this size is followed by the next one.
  public var size: ByteCount
  /// Segments are kept until all together hold more than this many times `size`.
  public var keep: Int

  public init(
    enabled: Bool = true, path: String? = nil, size: ByteCount = .megabytes(8), keep: Int = 8
  ) {
    self.enabled = enabled
    self.path = path
    self.size = size
    self.keep = keep
  }
}

extension JournalConfiguration {
  /// Smaller ones would hold little more than their own beginnings.
  private static let smallest = ByteCount.kilobytes(64)
  private static let largest = ByteCount.gigabytes(1)

  /// Paths are relative to `directory`.
  mutating func read(_ reader: MappingReader, directory: String) {
    reader.read("enabled", into: &enabled, as: .boolean)
    if let path = reader.read("path", as: .path("a directory's path", from: directory)) {
      self.path = path
    }
    reader.read(
      "size", into: &size,
      as: Converter<ByteCount>.size.checked { size in
        (Self.smallest...Self.largest).contains(size)
          ? nil : Problem(message: "must be between `64KB` and `1GB`")
      })
    reader.read("keep", into: &keep, as: .integer(1...10_000))
  }
}
