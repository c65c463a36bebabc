import CLinux
import Glibc

/// Names a memfd of other processes, so that it can be found again: by one of the descriptors that they
/// have of it.
public struct MemoryFile: Hashable, Sendable {
  public var inode: UInt64

  public init(inode: UInt64) { self.inode = inode }

  public init?(_ descriptor: Descriptor) {
    var status = stat()
    guard fstat(descriptor.raw, &status) == 0 else { return nil }
    inode = UInt64(status.st_ino)
  }

  /// A duplicate of one of theirs (pidfd_getfd(2)); nil where they have none any more, or may not be
  /// traced by us.
  public func open(in tree: ProcessTree) -> Descriptor? {
    for pid in tree.pids {
      // It has ended.
      guard let pidfd = try? Descriptor.pidfd(of: pid) else { continue }
      // It has ended, or can't be looked into.
      for number in (try? listNumbers("/proc/\(pid)/fd")) ?? [] where isNamed(by: number, of: pid) {
        let raw = clinux_pidfd_getfd(pidfd.raw, number)
        guard raw >= 0 else { continue }
        let duplicate = Descriptor(owning: raw)
        if MemoryFile(duplicate) == self { return duplicate }
      }
    }
    return nil
  }

  /// What the link says is looked at first: duplicating a hundred sockets is no way to find a file.
  private func isNamed(by number: Int32, of pid: Int32) -> Bool {
    var bytes = [UInt8](repeating: 0, count: 64)
    let length = readlink("/proc/\(pid)/fd/\(number)", &bytes, bytes.count)
    return length > 0 && bytes.starts(with: Array("/memfd:".utf8))
  }
}
