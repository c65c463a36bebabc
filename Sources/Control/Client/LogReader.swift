import Glibc
import Linux

/// Reads a log file from its last lines on, and continues as it grows. It starts again when the
/// file is truncated, and when a new file has the old name and the old file has been read to its
/// end. If the file's beginning is moved to another file while its worker runs, its unread section
/// is read there: a copy is renamed to `path.1` only after the log's beginning was removed, and has
/// the length of what was removed.
public struct LogReader: ~Copyable {
  private var file: LogFile
  private var watch = LogWatch()
  /// The offset of the next bytes.
  public private(set) var offset: Int
  /// The newest rotated file at the last check.
  private var aside: FileIdentity?
  /// A rotated file that hasn't been read to its end.
  private var rotated: LogFile?
  private var rotatedOffset: Int?

  /// - Parameters:
  ///   - lastLines: the number of lines before the end at which to begin; nil means the beginning
  ///     of the file.
  ///   - minOffset: the offset before which not to begin, in bytes.
  public init(
    _ log: LogLocation, lastLines: Int?, from minOffset: Int = 0
  ) throws(FileError) {
    let aside = FileIdentity(log.path + Self.asideSuffix)
    let file = try LogFile(log)
    let start = if let lastLines { try file.startOfLast(lastLines) } else { 0 }
    let size = try file.size()
    // A log that was rotated since is shorter.
    let offset = minOffset > start && minOffset <= size ? minOffset : start
    self.init(file, offset: offset, aside: aside)
  }

  /// This initializer can't throw. The optimizer of Swift 6.2.3 crashes on an initializer that
  /// throws when some fields are set.
  private init(_ file: consuming LogFile, offset: Int, aside: FileIdentity?) {
    self.file = file
    self.offset = offset
    self.aside = aside
  }

  /// The next bytes, at most 64 KiB. They are empty at the present end of the log. It doesn't wait
  /// for new output.
  public mutating func read() throws(FileError) -> [UInt8] {
    // Each detected removal needs another round. There are never many.
    for _ in 0..<8 {
      let old = try readRotated()
      if !old.isEmpty { return old }
      let size = try file.size()
      let chunk = try file.bytes(at: offset, count: min(size - offset, 1 << 16))
      // The check comes after the read: if the beginning was removed before the read, the bytes are
      // from a wrong offset.
      if detectRemoval() { continue }
      if size < offset {
        if !waitForName() { offset = 0 }
        continue
      }
      if chunk.isEmpty, let successor = file.successor() {
        file = successor
        watch = LogWatch()
        offset = 0
        continue
      }
      offset += chunk.count
      return chunk
    }
    return []
  }

  private static let asideSuffix = ".1"
  private var asidePath: String { file.path + Self.asideSuffix }

  private mutating func readRotated() throws(FileError) -> [UInt8] {
    guard rotatedOffset != nil else { return [] }
    let chunk = try rotated?.bytes(at: rotatedOffset ?? 0, count: 1 << 16) ?? []
    rotatedOffset = rotatedOffset.map { $0 + chunk.count }
    if chunk.isEmpty {
      rotated = nil
      rotatedOffset = nil
    }
    return chunk
  }

  /// Whether the file's beginning has been moved since the last check. Reading continues where
  /// those bytes are now.
  private mutating func detectRemoval() -> Bool {
    let now = FileIdentity(asidePath)
    guard now != aside else { return false }
    aside = now
    // The whole file was renamed. It is open here, and is read to its end.
    guard let now, now.number != file.identity?.number, now.size > 0 else { return false }
    let length = now.size
    if offset < length {
      // It is nil if the file was removed. Its unread bytes are lost.
      rotated = try? LogFile(file.log, suffix: Self.asideSuffix)
      rotatedOffset = offset
      offset = 0
    } else {
      offset -= length
    }
    return true
  }

  /// Called when the file is shorter than before. Returns false if it was truncated, and true if
  /// its beginning may be about to get another name.
  private mutating func waitForName() -> Bool {
    for _ in 0..<200 {
      if FileIdentity(asidePath) != aside { return true }
      if !fileExists(asidePath + ".partial") {
        return FileIdentity(asidePath) != aside
      }
      pauseThread(for: .milliseconds(1))
    }
    return false
  }

  /// Returns when the file has probably changed, and at the latest after 1 s, because inotify
  /// doesn't report when another file gets the name.
  public mutating func waitForChange() {
    _ = watch.wait(for: [file.path])
  }
}

/// An open file, and the name by which it was opened.
private struct LogFile: ~Copyable {
  let log: LogLocation
  let path: String
  private let descriptor: Descriptor

  init(_ log: LogLocation, suffix: String = "") throws(FileError) {
    descriptor = try log.open(suffix: suffix)
    self.log = log
    path = log.path + suffix
  }

  var identity: FileIdentity? { descriptor.status.map(FileIdentity.init) }

  /// The size in bytes.
  func size() throws(FileError) -> Int {
    try FileError.wrap("looking at", on: path) { () throws(SystemCallError) in
      try descriptor.readStatus().st_size
    }
  }

  func bytes(at offset: Int, count: Int) throws(FileError) -> [UInt8] {
    guard count > 0 else { return [] }
    return try FileError.wrap("reading", on: path) { () throws(SystemCallError) in
      try descriptor.readBytes(upTo: count, at: Int64(offset))
    }
  }

  /// The file that has the name now, if that is another one.
  func successor() -> LogFile? {
    guard let ours = descriptor.status, let named = fileStatus(of: path),
      !ours.isSameFile(as: named)
    else { return nil }
    // It is nil if the file is about to get another name.
    return try? LogFile(log)
  }

  /// The offset at which the last `count` lines begin. A newline at the very end ends the last line
  /// and begins no further one.
  func startOfLast(_ count: Int) throws(FileError) -> Int {
    let end = try size()
    guard count > 0 else { return end }
    var position = end
    var newlines = 0
    while position > 0 {
      let start = max(position - (1 << 16), 0)
      let block = try bytes(at: start, count: position - start)
      for index in block.indices.reversed() where block[index] == UInt8(ascii: "\n") {
        guard start + index + 1 < end else { continue }
        newlines += 1
        if newlines == count { return start + index + 1 }
      }
      position = start
    }
    return 0
  }
}

/// Distinguishes a file from another one that gets its name later.
private struct FileIdentity: Equatable {
  /// The device and the inode.
  let number: [UInt64]
  /// The size in bytes.
  let size: Int
  /// The time of the last change. Inode numbers are reused; together with this time they are
  /// unique.
  private let changed: [Int]

  /// Returns nil if there is no such file.
  init?(_ path: String) {
    guard let status = fileStatus(of: path) else { return nil }
    self.init(status)
  }

  init(_ status: stat) {
    number = [UInt64(status.st_dev), UInt64(status.st_ino)]
    size = status.st_size
    changed = [status.st_mtim.tv_sec, status.st_mtim.tv_nsec]
  }
}
