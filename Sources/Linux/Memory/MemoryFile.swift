import CLinux
import Glibc

/// The identity of a memfd of other processes. With it the memfd can be found again through one of
/// their descriptors.
public struct MemoryFile: Hashable, Sendable {
  public var inode: UInt64

  public init(inode: UInt64) { self.inode = inode }

  /// Reads the inode from a descriptor of the file; nil if the kernel refuses.
  public init?(_ descriptor: Descriptor) {
    var status = stat()
    guard fstat(descriptor.raw, &status) == 0 else { return nil }
    inode = UInt64(status.st_ino)
  }

  /// Duplicates one of the processes' descriptors of the file (pidfd_getfd(2)). It returns nil if
  /// they have none any more, or if this process may not trace them.
  public func open(in tree: ProcessTree) -> Descriptor? {
    for pid in tree.pids {
      // An error means that the process has ended.
      guard let pidfd = try? Descriptor.pidfd(of: pid) else { continue }
      // An error means that the process has ended or can't be examined.
      for number in (try? listNumbers("/proc/\(pid)/fd")) ?? [] where isNamed(by: number, of: pid) {
        let raw = clinux_pidfd_getfd(pidfd.raw, number)
        guard raw >= 0 else { continue }
        let duplicate = Descriptor(owning: raw)
        if MemoryFile(duplicate) == self { return duplicate }
      }
    }
    return nil
  }

  /// Whether the link of the descriptor names a memfd. This is checked first: duplicating a hundred
  /// sockets to find one file would be slow.
  private func isNamed(by number: Int32, of pid: Int32) -> Bool {
    var bytes = [UInt8](repeating: 0, count: 64)
    let length = readlink("/proc/\(pid)/fd/\(number)", &bytes, bytes.count)
    return length > 0 && bytes.starts(with: Array("/memfd:".utf8))
  }
}
