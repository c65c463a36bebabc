import Journal
import Linux
import Policy

/// The tallies for `dormouse report`: a file for each day, which is always replaced as a whole.
/// They are kept longer than the journal. A value has no state but the path, and any thread that
/// may wait for the disk can use it.
public struct DayStore: Sendable {
  /// The path of the directory with the files.
  public let directory: String
  /// The maximum number of days that are kept: a year and a month.
  static let maxKept = 396

  public init(directory: String) { self.directory = directory }

  private func path(of day: Int) -> String {
    "\(directory)/\(CalendarDate(daysSince1970: day).text).json"
  }

  /// Reads the tallies of a day.
  ///
  /// - Parameter day: days since 1970-01-01.
  /// - Returns: nil if there is no file.
  /// - Throws: `JournalMismatch` if the file is damaged, `SystemCallError` if it can't be read.
  public func load(_ day: Int) throws -> DayRecord? {
    let path = path(of: day)
    if isAbsent(path) { return nil }
    return try DayRecord(try readFile(path))
  }

  func save(_ record: DayRecord) throws {
    // The file's new name must not be on the disk before its content, because it replaces a good
    // file.
    try StateFile.replace(path(of: record.day), with: try record.encoded(), durability: .data)
  }

  /// Moves a damaged file aside. A new file can replace it, and the operator can examine it.
  func setAside(_ day: Int) {
    let path = path(of: day)
    // If that fails, the next write replaces the file.
    try? renameFile(path, to: path + ".damaged")
  }

  func trim() {
    // If the directory can't be listed, nothing is removed.
    let names = ((try? listDirectory(directory)) ?? []).filter { $0.hasSuffix(".json") }.sorted()
    for name in names.dropLast(Self.maxKept) { discardFile("\(directory)/\(name)") }
  }
}
