import JSONLines
import Lifecycle
import Policy

/// The tallies of one day (UTC). `dormouse report` uses them after the journal of that day has been
/// removed. The record is one line with a checksum.
public struct DayRecord: Hashable, Sendable {
  /// The number of days since 1970.
  public var day: Int
  public var tallies: [WorkerID: WorkerTally]
  public var crashes: [WorkerID: CrashGroups] = [:]

  public init(day: Int, tallies: [WorkerID: WorkerTally] = [:]) {
    self.day = day
    self.tallies = tallies
  }

  /// Adds the tallies and crashes of another time on the same day.
  public mutating func add(
    _ more: [WorkerID: WorkerTally], crashes new: [WorkerID: CrashGroups] = [:]
  ) {
    crashes.merge(new, uniquingKeysWith: +)
    for (worker, tally) in more { tallies[worker, default: WorkerTally()] += tally }
  }

  /// Returns the line of the record, with its checksum and a line end.
  public func encoded() throws -> [UInt8] {
    var fields = FieldWriter()
    fields.set("report", "dormouse")
    fields.set("format", 1)
    fields.set("day", Int64(day))
    fields.set("date", CalendarDate(daysSince1970: day).text)
    try fields.set("workers", coded: tallies.filter { !$0.value.isEmpty })
    // Readers of earlier versions ignore members that they don't know.
    let groups = crashes.mapValues(\.groups)
    if !groups.isEmpty { try fields.set("crashes", coded: groups) }
    return SealedLine.seal(fields)
  }

  /// Reads a record that `encoded` wrote.
  ///
  /// - Throws: `JournalMismatch`.
  public init(_ bytes: [UInt8]) throws {
    guard bytes.last == UInt8(ascii: "\n"), let record = SealedLine.open(bytes.dropLast()) else {
      throw JournalMismatch("its checksum differs")
    }
    let fields = FieldReader(record: record)
    guard try fields.integer("format") == 1, case .object(let workers)? = record["workers"] else {
      throw JournalMismatch("this version doesn't know its format")
    }
    day = Int(try fields.integer("day"))
    if case .object(let members)? = record["crashes"] {
      for member in members {
        let groups = try member.value.decode([CrashGroup].self)
        for group in groups { crashes[WorkerID(member.name), default: CrashGroups()].add(group) }
      }
    }
    // A count that only a newer version has is zero in an older record.
    let none = try JSON(encoding: WorkerTally())
    tallies = [:]
    for member in workers {
      tallies[WorkerID(member.name)] =
        try none.overlaid(with: member.value).decode(WorkerTally.self)
    }
  }
}
