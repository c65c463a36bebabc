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

  /// Opens the file through one of the processes' descriptors. It returns nil if they have none any
  /// more, or if this process may not trace them.
  public func open(in tree: ProcessTree) -> Descriptor? {
    for pid in tree.pids {
      let directory = "/proc/\(pid)/fd"
      // An error means that the process has ended or can't be examined.
      for number in (try? listNumbers(directory)) ?? [] where isNamed(by: number, of: pid) {
        if let file = self.file(behind: "\(directory)/\(number)") { return file }
      }
    }
    return nil
  }

  /// Whether the link of the descriptor names a memfd. This is checked first: examining a hundred
  /// sockets to find one file would be slow.
  private func isNamed(by number: Int32, of pid: Int32) -> Bool {
    var bytes = [UInt8](repeating: 0, count: 64)
    let length = readlink("/proc/\(pid)/fd/\(number)", &bytes, bytes.count)
    return length > 0 && bytes.starts(with: Array("/memfd:".utf8))
  }

  /// Opens the file if the link of a descriptor leads to it. The name proves nothing: in a mount
  /// namespace of its own a process can give it to a file of its own file system (FUSE), which may
  /// never answer, not even when a duplicate is closed. O_PATH only refers to the file.
  func file(behind link: String) -> Descriptor? {
    // An error means that the descriptor was closed, or that this process may not open the file.
    guard let reference = try? Descriptor.open(link, Int32(CLINUX_O_PATH)),
      (try? reference.isMemoryFile()) == true, MemoryFile(reference) == self
    else { return nil }
    // An error means that this process may not open the file.
    return try? Descriptor.open("/proc/self/fd/\(reference.raw)", O_RDWR | O_NONBLOCK)
  }
}
