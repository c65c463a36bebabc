import Glibc

/// Reads a log file from its last lines on, and goes on as it grows. Truncation starts it over;
/// so does a new file under the old name, once the old one has been read to its end.
public struct LogReader: ~Copyable {
  private var file: LogFile
  private var watch: OwnedDescriptor?
  private var offset: Int

  /// `lastLines`: begin so many lines before the end; nil for the beginning.
  public init(path: String, lastLines: Int?) throws(FileError) {
    let file = try LogFile(path: path)
    if let lastLines { offset = try file.startOfLast(lastLines) } else { offset = 0 }
    self.file = file
  }

  /// The next bytes, at most 64 KiB; none at the end of what is there.
  public mutating func read() throws(FileError) -> [UInt8] {
    let size = try file.size()
    if size < offset { offset = 0 }
    var chunk = try file.bytes(at: offset, count: min(size - offset, 1 << 16))
    if chunk.isEmpty, let successor = file.successor() {
      file = successor
      watch = nil
      offset = 0
      chunk = try file.bytes(at: 0, count: 1 << 16)
    }
    offset += chunk.count
    return chunk
  }

  /// Returns when the file has probably changed; at the latest after a second, because inotify
  /// doesn't tell when another file takes the name.
  public mutating func waitForChange() {
    if watch == nil {
      watch = makeWatch()
      // Whatever was written before the watch stood has woken nobody: look once more.
      if watch != nil { return }
    }
    // Without inotify (its instances are limited per user), look five times a second.
    guard let number = watch?.number else {
      _ = poll(nil, 0, 200)
      return
    }
    var entry = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
    guard poll(&entry, 1, 1000) > 0 else { return }
    var events = [UInt8](repeating: 0, count: 4096)
    _ = events.withUnsafeMutableBytes { Glibc.read(number, $0.baseAddress, $0.count) }
  }

  private func makeWatch() -> OwnedDescriptor? {
    let number = inotify_init1(Int32(IN_CLOEXEC))
    guard number >= 0 else { return nil }
    let descriptor = OwnedDescriptor(number)
    let mask = UInt32(IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF)
    guard inotify_add_watch(number, file.path, mask) >= 0 else { return nil }
    return descriptor
  }
}

/// An open file and the name that it was opened by.
private struct LogFile: ~Copyable {
  let path: String
  private let descriptor: OwnedDescriptor

  init(path: String) throws(FileError) {
    let (number, failure) = retryingOnInterrupt { Int(open(path, O_RDONLY | O_CLOEXEC)) }
    guard failure == 0 else { throw FileError(operation: "opening", path: path, errno: failure) }
    descriptor = OwnedDescriptor(Int32(number))
    self.path = path
  }

  /// Bytes.
  func size() throws(FileError) -> Int {
    var status = stat()
    guard fstat(descriptor.number, &status) == 0 else {
      throw FileError(operation: "looking at", path: path, errno: errno)
    }
    return status.st_size
  }

  func bytes(at offset: Int, count: Int) throws(FileError) -> [UInt8] {
    guard count > 0 else { return [] }
    var buffer = [UInt8](repeating: 0, count: count)
    let (length, failure) = retryingOnInterrupt {
      buffer.withUnsafeMutableBytes { pread(descriptor.number, $0.baseAddress, $0.count, offset) }
    }
    guard failure == 0 else { throw FileError(operation: "reading", path: path, errno: failure) }
    buffer.removeLast(count - length)
    return buffer
  }

  /// The file that has the name now, where it is another.
  func successor() -> LogFile? {
    var ours = stat()
    var named = stat()
    guard fstat(descriptor.number, &ours) == 0, stat(path, &named) == 0,
      ours.st_ino != named.st_ino || ours.st_dev != named.st_dev
    else { return nil }
    return try? LogFile(path: path)
  }

  /// The offset at which the last `count` lines begin. An end of line at the very end ends the
  /// last line, and begins no further one.
  func startOfLast(_ count: Int) throws(FileError) -> Int {
    let end = try size()
    guard count > 0 else { return end }
    var position = end
    var found = 0
    while position > 0 {
      let start = max(position - (1 << 16), 0)
      let block = try bytes(at: start, count: position - start)
      for index in block.indices.reversed() where block[index] == UInt8(ascii: "\n") {
        guard start + index + 1 < end else { continue }
        found += 1
        if found == count { return start + index + 1 }
      }
      position = start
    }
    return 0
  }
}
