import CLinux
import Glibc
import Linux

/// For those who bring pages while others might want to.
extension ImageReader {
  /// Keeps others from bringing the same pages, as long as this reader (or a copy) lives.
  ///
  /// - Returns: false where somebody else does already.
  func lock(waits: Bool) -> Bool {
    while true {
      let result = kernelResult { flock(file.raw, LOCK_EX | (waits ? 0 : LOCK_NB)) }
      if result != -EINTR { return result == 0 }
    }
  }

  /// Nobody has removed it (and made another) since it was opened.
  var isInPlace: Bool { clinux_inode_at(path) == clinux_inode(file.raw) }

  /// Notes how far the worker is, in the file itself.
  func mark(_ progress: ImageProgress) throws(SystemCallError) {
    // The file that was read, and not what has its name by now.
    let file = try Descriptor.open("/proc/self/fd/\(file.raw)", O_WRONLY)
    var word = progress.rawValue.littleEndian
    var failure: SystemCallError?
    let count = withUnsafeBytes(of: &word) { bytes -> Int in
      do throws(SystemCallError) {
        return try file.write(bytes, at: Int64(ImageLayout.progressOffset), path: path)
      } catch {
        failure = error
        return 0
      }
    }
    if let failure { throw failure }
    if count != 4 { throw SystemCallError("write", on: path, code: EIO) }
  }
}
