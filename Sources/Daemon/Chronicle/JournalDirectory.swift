import Glibc
import Journal
import Linux
import Policy

/// The segments of a journal on disk, `00000001.jsonl` and so on, in the order of their names. Any
/// thread that may wait for the disk can use it.
public struct JournalDirectory: Sendable {
  public let path: String

  public init(path: String) { self.path = path }

  private static let suffix = ".jsonl"

  func path(of number: Int) -> String {
    let digits = String(number)
    let zeros = String(repeating: "0", count: max(0, 8 - digits.count))
    return "\(path)/\(zeros)\(digits)\(Self.suffix)"
  }

  /// The numbers of the segments, the oldest first.
  func numbers() throws(SystemCallError) -> [Int] {
    try listDirectory(path).compactMap { name in
      name.hasSuffix(Self.suffix) ? Int(name.dropLast(Self.suffix.count)) : nil
    }.sorted()
  }

  /// Removes the oldest segments until the others fit into `limit`. The last two always stay.
  func trim(to limit: ByteCount) {
    guard let numbers = try? numbers() else { return }
    var total: Int64 = 0
    for (index, number) in numbers.reversed().enumerated() {
      let path = path(of: number)
      guard let status = fileStatus(of: path) else { continue }
      total += Int64(status.st_size)
      if index >= 2, total > limit.bytes { discardFile(path) }
    }
  }

  /// The segments for a replay, the oldest first. Each is read when the replay needs it.
  ///
  /// - Throws: `SystemCallError` if the directory can't be read.
  public func segments() throws -> [JournalSegment] {
    try numbers().map { Self.segment(path(of: $0)) }
  }

  /// The segment in a file, wherever the file is.
  public static func segment(_ path: String) -> JournalSegment {
    JournalSegment(name: path) { try readFile(path) }
  }

  /// The time at which a segment begins, from its first line; nil if that can't be read.
  public static func beginning(of segment: String) -> WallTime? {
    guard let file = try? Descriptor.open(segment) else { return nil }
    var bytes: [UInt8] = []
    // An error counts as the end of the file.
    while bytes.count < 1 << 20, let chunk = try? file.read(upTo: 1 << 14), !chunk.isEmpty {
      bytes += chunk
      guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")) else { continue }
      var reader = SegmentReader(Array(bytes[...end]), name: segment)
      if case .record(.header(let header), _)? = reader.next() { return header.wall }
      return nil
    }
    return nil
  }
}
