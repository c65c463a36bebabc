import CLinux
import Glibc
import Linux
import Synchronization

/// Moves the content of a log to other files while its worker still writes to it.
///
/// The worker keeps the log's file open and wouldn't open another one. So the beginning of the file
/// is copied to a new file and then removed:
///
/// 1. If the file system can remove the beginning of a file (FALLOC_FL_COLLAPSE_RANGE: ext4, XFS),
///    whole blocks are copied and removed. Output that is written in the meantime stays in the log.
///    Nothing is lost; a line may begin in one file and end in the next.
/// 2. On other file systems, and for a file of less than a block, the file is copied to its end and
///    truncated. Output that is written between the last read and the truncation, some
///    microseconds, is lost. logrotate's `copytruncate` has the same gap.
///
/// The copy is renamed to `path.1` after the removal. This shows a reader that the log was rotated
/// (`LogReader`). If the daemon dies in between, the copy is kept: duplicate lines are better than
/// lost ones.
///
/// A worker decides how large its log is, and can make it large without writing. So holes (a sparse
/// file) aren't copied, and only the last `limit` bytes of a log of more than twice `limit` are
/// copied. The remainder of the copy is a hole, so that an offset in the log is the same offset in
/// the copy.
public struct LogRotation: Sendable {
  public let destination: LogDestination
  let limit: Int64

  /// - Parameter limit: in bytes.
  public init(_ destination: LogDestination, limit: Int64 = .max) {
    self.destination = destination
    self.limit = limit
  }

  /// The path of the copy while it is being written.
  private var partial: String { destination.path + ".1.partial" }

  /// Rotates a regular file that is larger than the limit. Any other file stays unchanged. Call it
  /// on a thread that may wait for the disk.
  ///
  /// - Returns: whether the log was rotated.
  @discardableResult
  public func rotateIfTooLarge() throws(SystemCallError) -> Bool {
    let status: stat
    do throws(SystemCallError) {
      status = try destination.acting { () throws(SystemCallError) in
        try readStatus(of: destination.path)
      }
    } catch { return false }
    guard status.isRegularFile, Int64(status.st_size) > limit else { return false }
    return try rotate(over: limit)
  }

  /// Rotates the log, which must be a regular file. Call it on a thread that may wait: it takes as
  /// long as the disk needs.
  public func rotate() throws(SystemCallError) { _ = try rotate(over: -1) }

  /// The files that are being rotated, by device and inode.
  private static let filesUnderWay = Mutex<Set<[UInt64]>>([])

  /// Marks a file as being rotated, until `endRotation`. Returns false if it is already.
  static func beginRotation(of file: [UInt64]) -> Bool {
    filesUnderWay.withLock { $0.insert(file).inserted }
  }

  static func endRotation(of file: [UInt64]) { filesUnderWay.withLock { _ = $0.remove(file) } }

  /// Workers may have the same log. Of two rotations at the same time, one would remove what it has
  /// not copied.
  ///
  /// - Returns: false if another rotation of the file is under way, or has just ended.
  private func rotate(over size: Int64) throws(SystemCallError) -> Bool {
    let (log, status) = try destination.acting { () throws(SystemCallError) in
      try destination.openRegular(O_RDWR)
    }
    let file = [UInt64(status.st_dev), UInt64(status.st_ino)]
    guard Self.beginRotation(of: file) else { return false }
    defer { Self.endRotation(of: file) }
    guard Int64(try log.readStatus(destination.path).st_size) > size else { return false }
    try rotate(log)
    return true
  }

  private func rotate(_ log: Descriptor) throws(SystemCallError) {
    if destination.keep == 0 { return try log.truncate(to: 0, path: destination.path) }
    try destination.acting { () throws(SystemCallError) in
      if fileExists(partial) { nameCopy() }
      do throws(SystemCallError) {
        try moveContent(log)
      } catch {
        discardFile(partial)
        throw error
      }
      nameCopy()
    }
  }

  private func nameCopy() {
    destination.shift()
    // If the rename fails, the copy keeps its name until the next rotation renames it.
    try? renameFile(partial, to: destination.rotatedPath(1))
  }

  private func moveContent(_ log: Descriptor) throws(SystemCallError) {
    let copy = try Descriptor.open(
      partial, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
    let status = try log.readStatus(destination.path)
    // A file system without owners or modes (vfat) refuses both. The copied bytes matter more.
    if geteuid() == 0 {
      try? copy.setOwner(user: status.st_uid, group: status.st_gid, path: partial)
    }
    // A refusal is ignored for the same reason.
    try? copy.setMode(status.st_mode & 0o777, path: partial)

    let block = max(Int64(status.st_blksize), 512)
    // The last block stays: a range that reaches the end of the file can't be removed.
    let whole = (Int64(status.st_size) - 1) / block * block
    if whole > 0 {
      try append(log, wanted(of: 0..<whole), to: copy)
      // The disk has the copy before the removal: a power failure would otherwise lose both. A log
      // of more than twice the limit grows faster than that, and isn't copied as a whole anyway.
      if Int64(status.st_size) / 2 <= limit { try copy.syncData(partial) }
      if Self.removeBeginning(of: log, whole) { return }
    }
    var copied = max(whole, 0)
    // The number of rounds is limited, because a worker may write as fast as the copy is made.
    for _ in 0..<Self.maxRounds {
      let size = Int64(try log.readStatus(destination.path).st_size)
      if size <= copied { break }
      try append(log, wanted(of: copied..<size), to: copy)
      copied = size
    }
    try log.truncate(to: 0, path: destination.path)
  }

  /// Removes whole blocks from the beginning. Returns false if this file system can't.
  static func removeBeginning(of log: Descriptor, _ length: Int64) -> Bool {
    clinux_cut_beginning(log.raw, length) == 0
  }

  private static let maxRounds = 64

  private func wanted(of range: Range<Int64>) -> Range<Int64> {
    let length = range.upperBound - range.lowerBound
    // The limit applies from twice its size on, so that nothing is lost of a log that is checked a
    // moment late.
    return length / 2 > limit ? (range.upperBound - limit)..<range.upperBound : range
  }

  /// Copies a range to the same offset in the copy, without its holes.
  private func append(
    _ log: Descriptor, _ range: Range<Int64>, to copy: Descriptor
  ) throws(SystemCallError) {
    var position = range.lowerBound
    while let section = try Self.data(of: log, in: position..<range.upperBound, destination.path) {
      try copyBytes(log, section, to: copy)
      position = section.upperBound
    }
    try copy.truncate(to: range.upperBound, path: partial)
  }

  /// The first section of the range that isn't a hole, or nil if there is none.
  private static func data(
    of log: Descriptor, in range: Range<Int64>, _ path: String
  ) throws(SystemCallError) -> Range<Int64>? {
    guard !range.isEmpty else { return nil }
    // These are SEEK_DATA and SEEK_HOLE of lseek(2).
    let (seekData, seekHole) = (Int32(3), Int32(4))
    let start = kernelResult { lseek(log.raw, off_t(range.lowerBound), seekData) }
    // There is no data after this offset.
    if start == -off_t(ENXIO) { return nil }
    // This file system doesn't report holes.
    if start == -off_t(EINVAL) { return range }
    if start < 0 { throw SystemCallError("lseek", on: path, code: Int32(-start)) }
    if Int64(start) >= range.upperBound { return nil }
    let end = try systemCall("lseek", on: path) { lseek(log.raw, start, seekHole) }
    return Int64(start)..<min(Int64(end), range.upperBound)
  }

  private func copyBytes(
    _ log: Descriptor, _ range: Range<Int64>, to copy: Descriptor
  ) throws(SystemCallError) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
    defer { buffer.deallocate() }
    try copy.seek(to: range.lowerBound, path: partial)
    var position = range.lowerBound
    while position < range.upperBound {
      let wanted = min(buffer.count, Int(range.upperBound - position))
      let section = UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted])
      let count = try log.read(into: section, at: position, path: destination.path)
      if count == 0 { return }
      do throws(SystemCallError) {
        try copy.writeAll(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      } catch { throw error.on(partial) }
      position += Int64(count)
    }
  }
}
