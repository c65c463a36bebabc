import Glibc
import Linux

/// Records the length of a log at certain times, in a file of the daemon. The worker writes to its
/// log itself, so nothing in the log says when a line was written. `dormouse logs --since` and
/// `--timestamps` read this file.
///
/// Each entry is a line: seconds since 1970, and the length in bytes. If a log has become shorter,
/// it was rotated. What is left of it was written after the last entry.
public struct LogTimes: Sendable {
  private let path: String

  /// The maximum length of the file in bytes. The older half of a longer file is dropped.
  static let limit = 128 << 10
  /// The minimum time between two entries, in seconds. Shorter times help no client, and each entry
  /// costs a write.
  static let minInterval: Int64 = 2

  public init(path: String) { self.path = path }

  /// Adds an entry if the log's length has changed. Call it on a thread that may wait for the disk.
  ///
  /// - Parameter now: seconds since 1970.
  public func record(_ destination: LogDestination, at now: Int64) throws(SystemCallError) {
    let size = try destination.reading { (_, size) throws(SystemCallError) in size }
    let file = try Descriptor.open(
      path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, mode: 0o600)
    let entries = try Self.end(of: file, path)
    guard let last = entries.last else { return try file.writeAll(Self.line(now, size)) }
    if size < last.size {
      let tail = Self.line(last.time, 0) + Self.line(max(now, last.time), size)
      return try Self.replace(file, path, with: tail)
    }
    guard size > last.size, now - last.time >= Self.minInterval else { return }
    try file.writeAll(Self.line(now, size))
    let length = try file.readStatus(path).st_size
    if length > Self.limit { try Self.drop(half: file, path, length) }
  }

  private static func line(_ time: Int64, _ size: Int64) -> [UInt8] {
    Array("\(time) \(size)\n".utf8)
  }

  /// The entries in the last 128 bytes. The first of them may be incomplete, and is dropped then.
  private static func end(
    of file: Descriptor, _ path: String
  ) throws(SystemCallError) -> [(time: Int64, size: Int64)] {
    let length = Int64(try file.readStatus(path).st_size)
    try file.seek(to: max(0, length - 128), path: path)
    let lines = String(decoding: try file.read(upTo: 128), as: UTF8.self)
      .split(separator: "\n", omittingEmptySubsequences: false)
    return lines.dropFirst(length > 128 ? 1 : 0).compactMap(parse)
  }

  static func parse(_ line: Substring) -> (time: Int64, size: Int64)? {
    let numbers = line.split(separator: " ").map { Int64($0) }
    guard numbers.count == 2, let time = numbers[0], let size = numbers[1] else { return nil }
    return (time, size)
  }

  private static func drop(
    half file: Descriptor, _ path: String, _ length: Int
  ) throws(SystemCallError) {
    try file.seek(to: Int64(length / 2), path: path)
    let tail = try file.read(upTo: length - length / 2)
    guard let end = tail.firstIndex(of: UInt8(ascii: "\n")) else { return }
    try replace(file, path, with: Array(tail[(end + 1)...]))
  }

  /// Writes the file in place. If the daemon dies in between, the times of old lines are lost, but
  /// none of the log's lines.
  private static func replace(
    _ file: Descriptor, _ path: String, with bytes: [UInt8]
  ) throws(SystemCallError) {
    try file.truncate(to: 0, path: path)
    try file.writeAll(bytes)
  }
}
