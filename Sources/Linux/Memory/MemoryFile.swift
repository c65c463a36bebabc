import CLinux
import Glibc

/// Identifies a memfd of other processes, so that it can be found again through one of their descriptors of
/// it.
public struct MemoryFile: Hashable, Sendable {
  public var inode: UInt64

  public init(inode: UInt64) { self.inode = inode }

  public init?(_ descriptor: Descriptor) {
    var status = stat()
    guard fstat(descriptor.raw, &status) == 0 else { return nil }
    inode = UInt64(status.st_ino)
  }

  /// A duplicate of one of their descriptors (pidfd_getfd(2)); nil if they have none any more, or this
  /// process may not trace them.
  public func open(in tree: ProcessTree) -> Descriptor? {
    for pid in tree.pids {
      // The process has ended.
      guard let pidfd = try? Descriptor.pidfd(of: pid) else { continue }
      // The process has ended, or can't be examined.
      for number in (try? listNumbers("/proc/\(pid)/fd")) ?? [] where isNamed(by: number, of: pid) {
        let raw = clinux_pidfd_getfd(pidfd.raw, number)
        guard raw >= 0 else { continue }
        let duplicate = Descriptor(owning: raw)
        if MemoryFile(duplicate) == self { return duplicate }
      }
    }
    return nil
  }

  /// The link's text is checked first: duplicating a hundred sockets to find one file would be slow.
  private func isNamed(by number: Int32, of pid: Int32) -> Bool {
    var bytes = [UInt8](repeating: 0, count: 64)
    let length = readlink("/proc/\(pid)/fd/\(number)", &bytes, bytes.count)
    return length > 0 && bytes.starts(with: Array("/memfd:".utf8))
  }
}
