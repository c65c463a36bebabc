import Glibc
import Linux

/// When the bytes of a log were written, as the daemon noted it every few seconds.
public struct LogTimeline: Sendable {
  /// The log had `size` bytes at `time` (seconds since 1970); both grow.
  private var notes: [(time: Int64, size: Int)] = []

  /// - Parameters:
  ///   - path: of the notes; without that file nothing is known but the log's last change.
  ///   - log: the log itself.
  public init(path: String?, log: String) {
    // The daemon's directory may be readable to its user only.
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
    // A clock that was set back, and a rotation while this was read.
    guard size >= notes.last?.size ?? 0, time >= notes.last?.time ?? .min else { return }
    notes.append((time, size))
  }

  public var isEmpty: Bool { notes.isEmpty }

  /// Where to begin so that nothing is left out that was written at `time` or later; nil: not known.
  public func offset(since time: Int64) -> Int? {
    guard let first = notes.first else { return nil }
    if first.time > time { return 0 }
    return notes.last { $0.time <= time }?.size
  }

  /// By when the byte before `offset` had been written; nil: since the last note.
  public func time(at offset: Int) -> Int64? {
    var (low, high) = (0, notes.count)
    while low < high {
      let middle = (low + high) / 2
      if notes[middle].size < offset { low = middle + 1 } else { high = middle }
    }
    return low < notes.count ? notes[low].time : nil
  }
}
