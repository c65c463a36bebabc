import Glibc
import Journal
import Linux

/// The tallies for `dormouse report`: a file a day, replaced as a whole. They outlive the journal.
public struct DayStore: Sendable {
  public let directory: String
  /// A year and a month.
  static let maxKept = 396

  public init(directory: String) { self.directory = directory }

  private func path(of day: Int) -> String { "\(directory)/\(CivilDate(day: day).text).json" }

  /// `nil` where there is none.
  ///
  /// - Throws: `JournalMismatch` where it is damaged, `SystemCallError` where it can't be read.
  public func load(_ day: Int) throws -> DayRecord? {
    let path = path(of: day)
    if isAbsent(path) { return nil }
    return try DayRecord(try readFile(path))
  }

  func save(_ record: DayRecord) throws {
    // Its name must not be on the disk before its content: it replaces a good one.
    try StateFile.replace(path(of: record.day), with: try record.encoded(), durability: .data)
  }

  /// Moves a damaged file aside, so that a new one can take its place and you can look at the old one.
  func setAside(_ day: Int) {
    let path = path(of: day)
    // If that fails, the next write replaces it.
    try? renameFile(path, to: path + ".damaged")
  }

  func trim() {
    // A directory that can't be listed isn't trimmed.
    let names = ((try? listDirectory(directory)) ?? []).filter { $0.hasSuffix(".json") }.sorted()
    for name in names.dropLast(Self.maxKept) { discardFile("\(directory)/\(name)") }
  }
}
