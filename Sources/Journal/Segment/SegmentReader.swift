import JSONLines
import Lifecycle
import Policy

/// One record of a segment.
public enum JournalRecord: Sendable {
  case header(SegmentHeader)
  case checkpoint(Engine)
  /// An event with the directives that resulted, as `JSON(directive:)` writes them.
  case event(Event, directives: [JSON])
  case policy(LifecyclePolicy)
  case clock(WallTime)
}

/// A section of a segment that isn't a valid record.
public struct JournalDamage: Hashable, Sendable, CustomStringConvertible {
  public var segment: String
  /// The offset from the segment's beginning in bytes.
  public var offset: Int
  /// The number of the line, from 1.
  public var line: Int
  public var what: String
  /// True if the damage is at the end of its segment: the record was being written when the daemon
  /// or the machine died. Any other section was damaged later.
  public var isTornTail: Bool

  public var description: String {
    isTornTail
      ? "\(segment): the last record, at byte \(offset), is incomplete and skipped: \(what)"
      : "\(segment): line \(line), at byte \(offset), is damaged: \(what); the rest of this "
        + "segment is skipped"
  }
}

/// Reads one segment, record by record, and stops at damage.
public struct SegmentReader: Sendable {
  public enum Item: Sendable {
    case record(JournalRecord, at: Instant)
    case damage(JournalDamage)
  }

  /// The segment's name, for messages.
  public let name: String
  private let bytes: [UInt8]
  private var offset = 0
  private var line = 0
  private var profiles: ProfileCodec?
  /// The samples of the last record that haven't been returned yet.
  private var samples: ArraySlice<(at: Instant, event: Event)> = []

  public init(_ bytes: [UInt8], name: String) {
    self.bytes = bytes
    self.name = name
  }

  /// Returns the next record or damage. `nil` at the end, and after damage.
  public mutating func next() -> Item? {
    if let sample = samples.popFirst() {
      return .record(.event(sample.event, directives: []), at: sample.at)
    }
    guard offset < bytes.count else { return nil }
    line += 1
    let start = offset
    guard let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) else {
      return damage(at: start, "its line has no end")
    }
    guard let record = SealedLine.open(bytes[start..<end]) else {
      return damage(at: start, "its checksum differs")
    }
    offset = end + 1
    do {
      let (read, at) = try read(record)
      if let read { return .record(read, at: at) }
      return next()
    } catch { return damage(at: start, "\(error)") }
  }

  private mutating func damage(at start: Int, _ what: String) -> Item {
    let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n"))
    // The damage is no torn end if valid records follow, or if the record is valid and only its
    // kind is unknown.
    let following = end.map { bytes[($0 + 1)...] } ?? []
    let hasRecordsAfter = following.split(separator: UInt8(ascii: "\n")).contains {
      SealedLine.open($0) != nil
    }
    let isRecord = end.map { SealedLine.open(bytes[start..<$0]) != nil } ?? false
    offset = bytes.count
    return .damage(
      JournalDamage(
        segment: name, offset: start, line: line, what: what,
        isTornTail: !hasRecordsAfter && !isRecord))
  }

  /// Reads a record. It returns `nil` for a record of samples, which are returned one by one, and
  /// for a record of a newer version that changes nothing.
  private mutating func read(_ record: JSON) throws -> (JournalRecord?, Instant) {
    let fields = FieldReader(record: record)
    let at = try fields.instant("t")
    if record["journal"] != nil { return (.header(try header(fields)), at) }
    guard let profiles else { throw JournalMismatch("the segment has no header") }
    if record["s"] != nil {
      samples = try SampleBatch.read(record)[...]
      return (nil, at)
    }
    if record["e"] != nil {
      let event = try fields.event(profiles)
      return (.event(event, directives: record["do"]?.elements ?? []), at)
    }
    if let checkpoint = record["checkpoint"] {
      return (.checkpoint(try profiles.engine(checkpoint)), at)
    }
    if let policy = record["policy"] { return (.policy(try profiles.policy(policy)), at) }
    if record["wall"] != nil {
      return (.clock(WallTime(nanoseconds: try fields.integer("wall"))), at)
    }
    throw JournalMismatch("this version doesn't know this kind of record")
  }

  private mutating func header(_ fields: FieldReader) throws -> SegmentHeader {
    let format = try fields.integer("format")
    guard format == SegmentHeader.format else {
      throw JournalMismatch(
        "it has format \(format), and this version reads \(SegmentHeader.format)")
    }
    guard let policy = fields.record["policy"] else { throw JournalMismatch("`policy` is missing") }
    let profiles = try ProfileCodec(header: policy)
    self.profiles = profiles
    return SegmentHeader(
      version: try fields.text("version"), run: try fields.text("run"),
      segment: try fields.integer("segment"), at: try fields.instant("t"),
      wall: WallTime(nanoseconds: try fields.integer("wall")), policy: try profiles.policy())
  }
}
