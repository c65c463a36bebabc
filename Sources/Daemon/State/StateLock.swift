import Glibc
import Linux

/// The lock of a state directory (flock(2)), held while `self` lives: two daemons must never manage
/// the same workers.
///
/// The directory itself is locked: its lock can't be removed, as a file can. The file `lock` in it
/// is locked too, because earlier versions lock only that one.
package struct StateLock {
  private let directory: DirectoryHandle
  private let file: Descriptor

  /// - Throws: `StartError.inUse` if another process holds it.
  package init(_ directory: DirectoryHandle) throws(StartError) {
    self.directory = directory
    let path = directory.path
    // NFS locks only what is open for writing (EBADF), which no directory can be: there the file
    // decides.
    let result = kernelResult { flock(directory.descriptor.raw, LOCK_EX | LOCK_NB) }
    if result == -EWOULDBLOCK { throw .inUse(path: path) }
    do throws(SystemCallError) {
      file = try directory.open("lock", O_RDWR | O_CREAT, mode: 0o600)
      let isReplaced = try fileStatus(of: path)?.isSameFile(as: directory.status()) != true
      if isReplaced { throw SystemCallError("lock", on: path, code: ESTALE) }
    } catch { throw .directory(error) }
    if flock(file.raw, LOCK_EX | LOCK_NB) != 0 { throw .inUse(path: path) }
  }

  /// Releases it before the process has ended: a thread that waits for a file system that doesn't answer keeps the
  /// descriptors of a process in existence, although nothing else of it is left.
  func release() {
    file.unlock()
    directory.descriptor.unlock()
  }
}
