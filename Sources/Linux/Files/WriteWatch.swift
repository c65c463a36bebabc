import Glibc

/// Reports the next write to each of many files (inotify(7)). The kernel limits the number of these
/// objects, and of watched files, for each ordinary user.
public final class WriteWatch: Sendable {
  /// The inotify descriptor. It is readable when `readReports` has something to return.
  public let descriptor: Descriptor

  public init() throws(SystemCallError) {
    let number = try systemCall("inotify_init1") {
      inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
    }
    descriptor = Descriptor(owning: number)
  }

  /// Watches for the file's next write, which is reported once. Call it on a thread that may wait
  /// for the file's directory.
  ///
  /// - Returns: a number for `readReports` and `removeWatch`. It is the same number if the file is
  ///   watched already.
  public func addWatch(
    to path: String, followsLinks: Bool
  ) throws(SystemCallError) -> Int32 {
    let links = followsLinks ? 0 : UInt32(IN_DONT_FOLLOW)
    return try systemCall("inotify_add_watch", path: path) {
      inotify_add_watch(descriptor.raw, $0, UInt32(IN_MODIFY) | UInt32(IN_ONESHOT) | links)
    }
  }

  /// Stops watching a file. The write may have been reported already, and the file may have been
  /// removed.
  public func removeWatch(_ number: Int32) { _ = inotify_rm_watch(descriptor.raw, number) }

  /// Returns what has happened since the last call, without waiting.
  public func readReports() -> Reports {
    var reports = Reports()
    // If there is nothing to read (EAGAIN), there are no reports.
    let bytes = (try? descriptor.read(upTo: 1 << 16)) ?? []
    bytes.withUnsafeBytes { buffer in
      var position = 0
      while position + Self.headSize <= buffer.count {
        let number = buffer.loadUnaligned(fromByteOffset: position, as: Int32.self)
        let mask = buffer.loadUnaligned(fromByteOffset: position + 4, as: UInt32.self)
        let length = buffer.loadUnaligned(fromByteOffset: position + 12, as: UInt32.self)
        if mask & UInt32(IN_MODIFY) != 0 {
          reports.written.append(number)
        } else if mask & UInt32(IN_IGNORED) != 0 {
          reports.ended.append(number)
        }
        position += Self.headSize + Int(length)
      }
    }
    return reports
  }

  public struct Reports: Hashable, Sendable {
    /// The numbers of files that were written to.
    public var written: [Int32] = []
    /// The numbers that aren't valid any more: the write was reported, or the file was removed.
    public var ended: [Int32] = []
  }

  /// The size of `struct inotify_event` in bytes, without the name, which only directories have.
  private static let headSize = 16
}
