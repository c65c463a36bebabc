import Checksum
import JSONLines
import Policy

/// The first record of every segment.
public struct SegmentHeader: Hashable, Sendable {
  /// The number of the format. It is raised when a reader of the previous version couldn't read the
  /// format any more.
  public static let format: Int64 = 1

  /// The version of the program that wrote the segment.
  public var version: String
  /// A number in text that the daemon chooses. It identifies the daemon's run.
  public var run: String
  /// The number of the segment in its run, from 0.
  public var segment: Int64
  public var at: Instant
  public var wall: WallTime
  public var policy: LifecyclePolicy
}

/// Adds a checksum at the end of a record, and checks it.
enum SealedLine {
  private static let mark = Array(#","crc":""#.utf8)
  /// The length of `,"crc":"01234567"}`.
  private static var sealLength: Int { mark.count + 10 }

  static func seal(_ fields: FieldWriter) -> [UInt8] {
    var line = fields.object.line
    line.removeLast()
    let sum = CRC32.castagnoli.text(of: line)
    return line + mark + Array("\(sum)\"}\n".utf8)
  }

  /// Returns the record of a line without its end. `nil` if the checksum differs.
  static func open(_ line: ArraySlice<UInt8>) -> JSON? {
    guard line.count > sealLength else { return nil }
    let body = line.dropLast(sealLength)
    let sum = Array("\(CRC32.castagnoli.text(of: body))\"}".utf8)
    guard line[body.endIndex...].elementsEqual(mark + sum) else { return nil }
    return JSON(Array(body) + [UInt8(ascii: "}")])
  }
}
