import CLinux
import Glibc
import Linux

/// Puts a log aside that its worker goes on writing to.
///
/// The worker holds the file itself and wouldn't open another, so its beginning is copied to a file of its
/// own and then taken out:
///
/// 1. where the file system can cut out a file's beginning (FALLOC_FL_COLLAPSE_RANGE: ext4, XFS), whole
///    blocks are copied and cut; whatever is written meanwhile stays in the file. Nothing is lost; a
///    line may begin in one file and end in the next.
/// 2. elsewhere the file is copied to its end and truncated. What is written between the last read and
///    the truncation, some microseconds, is lost: logrotate's `copytruncate` has the same gap.
///
/// The copy gets its name `path.1` after the cut, by which a reader can tell that it has happened
/// (`LogReader`). One that was cut off by our death is taken for what it is worth: doubled lines are
/// better than lost ones.
public struct LogRotation: Sendable {
  let place: LogPlace

  public init(_ place: LogPlace) { self.place = place }

  /// While it is being written.
  private var partial: String { place.path + ".1.partial" }

  /// On any thread, and only for regular files. Takes as long as the disk does.
  public func rotate() throws(SystemCallError) {
    let place = place
    let log = try place.acting { () throws(SystemCallError) in
      try Descriptor.open(place.path, O_RDWR | (place.isElsewhere ? 0 : O_NOFOLLOW))
    }
    if place.keep == 0 { return try cut(log, to: 0) }
    try place.acting { () throws(SystemCallError) in
      if access(partial, F_OK) == 0 { name() }
      do throws(SystemCallError) {
        try putAside(log)
      } catch {
        unlink(partial)
        throw error
      }
      name()
    }
  }

  private func name() {
    place.shift()
    rename(partial, place.aside(1))
  }

  private func putAside(_ log: Descriptor) throws(SystemCallError) {
    let copy = try Descriptor.open(
      partial, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
    let status = try log.status(place.path)
    if geteuid() == 0 { fchown(copy.raw, status.st_uid, status.st_gid) }
    fchmod(copy.raw, status.st_mode & 0o777)

    let block = max(Int64(status.st_blksize), 512)
    // Not all of it: a range that reaches the end can't be cut out.
    let whole = (Int64(status.st_size) - 1) / block * block
    if whole > 0 {
      try append(log, 0..<whole, to: copy)
      if Self.cutBeginning(of: log, whole) { return }
    }
    var copied = max(whole, 0)
    while true {
      let size = Int64(try log.status(place.path).st_size)
      if size <= copied { break }
      try append(log, copied..<size, to: copy)
      copied = size
    }
    try cut(log, to: 0)
  }

  /// Whole blocks. False: this file system can't.
  static func cutBeginning(of log: Descriptor, _ length: Int64) -> Bool {
    clinux_cut_beginning(log.raw, length) == 0
  }

  private func cut(_ log: Descriptor, to size: off_t) throws(SystemCallError) {
    _ = try systemCall("ftruncate", on: place.path) { ftruncate(log.raw, size) }
  }

  private func append(
    _ log: Descriptor, _ range: Range<Int64>, to copy: Descriptor
  ) throws(SystemCallError) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
    defer { buffer.deallocate() }
    var position = range.lowerBound
    while position < range.upperBound {
      let wanted = min(buffer.count, Int(range.upperBound - position))
      let at = off_t(position)
      let count = try systemCall("pread", on: place.path) {
        pread(log.raw, buffer.baseAddress, wanted, at)
      }
      if count == 0 { return }
      do throws(SystemCallError) {
        try copy.writeAll(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      } catch {
        throw SystemCallError("write", on: partial, code: error.code)
      }
      position += Int64(count)
    }
  }
}

extension Descriptor {
  fileprivate func status(_ path: String) throws(SystemCallError) -> stat {
    var status = stat()
    _ = try systemCall("fstat", on: path) { fstat(raw, &status) }
    return status
  }

  /// Bytes, of a regular file; `nil` for anything else.
  public var fileSize: Int64? {
    var status = stat()
    guard fstat(raw, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return Int64(status.st_size)
  }
}
