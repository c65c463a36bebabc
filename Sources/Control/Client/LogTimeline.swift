import Glibc
import Linux

/// The times at which the bytes of a log were written, as the daemon has recorded them every few
/// seconds.
public struct LogTimeline: Sendable {
  /// The log had `size` bytes at `time` (seconds since 1970). Both grow.
  private var entries: [(time: Int64, size: Int)] = []

  /// - Parameters:
  ///   - path: the file of the recorded times. Without it only the log's last change is known.
  ///   - log: the log itself.
  public init(path: String?, log: String) {
    // Only the daemon's user may be able to read the directory. Then nothing is recorded.
    self.init(text: path.flatMap { try? readText($0) } ?? "")
    guard let status = fileStatus(of: log) else { return }
    add(Int64(status.st_mtim.tv_sec), Int(status.st_size))
  }

  init(text: String) {
    for line in text.split(separator: "\n") {
      let numbers = line.split(separator: " ").map { Int64($0) }
      guard numbers.count == 2, let time = numbers[0], let size = numbers[1].flatMap(Int.init)
      else {
        continue
      }
      add(time, size)
    }
  }

  private mutating func add(_ time: Int64, _ size: Int) {
    // Ignores entries after the clock was set back, and after a rotation during the read.
    guard size >= entries.last?.size ?? 0, time >= entries.last?.time ?? .min else { return }
    entries.append((time, size))
  }

  public var isEmpty: Bool { entries.isEmpty }

  /// The offset from which to read so that nothing is missed that was written at `time` or later;
  /// nil if that isn't known.
  public func offset(since time: Int64) -> Int? {
    guard let first = entries.first else { return nil }
    if first.time > time { return 0 }
    return entries.last { $0.time <= time }?.size
  }

  /// A time at which the byte before `offset` had been written; nil if it was written after the
  /// last entry.
  public func time(at offset: Int) -> Int64? {
    let index = entries.partitioningIndex { $0.size >= offset }
    return index < entries.count ? entries[index].time : nil
  }
}
