import Policy

/// The section `journal:`: how much history the daemon keeps for `events`, `report` and `replay`.
public struct JournalConfiguration: Hashable, Sendable {
  /// False: the daemon writes no journal.
  public var enabled: Bool = true
  /// The directory of the journal. `nil`: `journal` in the state directory.
  public var path: String?
  /// The size of a segment at which the next one begins.
  public var size: ByteCount = .megabytes(8)
  /// The number of segment sizes that all segments together may have. The oldest segments are
  /// removed when they have more.
  public var keep: Int = 8

  @KeyList<JournalConfiguration> static var keys: [Key<JournalConfiguration>] {
    Key<JournalConfiguration>(
      "enabled", \.enabled, as: .boolean,
      about: "`false`: no history is written (`report` still counts)")
    Key<JournalConfiguration>(
      "path", path: \.path, expects: "a directory's path",
      about: "a directory to which only the daemon's user may write",
      usual: "`journal` in the state directory")
    Key<JournalConfiguration>(
      "size", \.size, as: .segment, about: "a segment of this size is followed by the next one")
    Key<JournalConfiguration>(
      "keep", \.keep, as: .integer(1...10_000),
      about: """
        the oldest segments are removed when all of them have more than this many times `size`
        """)
  }
}

extension Converter where Value == ByteCount {
  /// The range of a segment's size. A smaller segment would contain little more than its header.
  fileprivate static var segment: Converter {
    Converter.size.checked(kind: "size, `64KB` to `1GB`") { size in
      (.kilobytes(64) ... .gigabytes(1)).contains(size)
        ? nil : Problem(message: "must be between `64KB` and `1GB`")
    }
  }
}
