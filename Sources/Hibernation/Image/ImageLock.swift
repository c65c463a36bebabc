import CLinux
import Glibc
import Linux

/// The lock for the process that restores pages: another process might try to do the same.
extension ImageReader {
  /// Keeps other processes from restoring the same pages while this reader (or a copy of it)
  /// exists.
  ///
  /// - Parameter waits: true waits until the lock is free.
  /// - Returns: false if another process restores them already.
  func lock(waits: Bool) -> Bool {
    while true {
      let result = kernelResult { flock(file.raw, LOCK_EX | (waits ? 0 : LOCK_NB)) }
      if result != -EINTR { return result == 0 }
    }
  }

  /// True if the file hasn't been removed or replaced since it was opened.
  var isStillAtPath: Bool { clinux_inode_at(path) == clinux_inode(file.raw) }

  /// Writes the progress of the hibernation or resume into the file.
  func mark(_ progress: ImageProgress) throws(SystemCallError) {
    // This opens the file that was read, even if another file has its name by now.
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
