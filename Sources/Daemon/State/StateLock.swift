import Glibc
import Linux

/// The lock of a state directory (flock(2)). It exists while `self` exists, so that two daemons
/// never manage the same workers.
///
/// The directory itself is locked: its lock can't be removed, as a file can. The file `lock` in it
/// is locked too, because earlier versions lock only that one.
package struct StateLock {
  private let directory: DirectoryHandle
  private let file: Descriptor

  /// How long a daemon that starts waits for the lock. If its predecessor was killed between the
  /// fork and the exec of a child, that child still has the lock, until it executes its program.
  static let timeout = Duration.seconds(2)

  /// Takes the lock.
  ///
  /// - Parameter timeout: how long to wait for another process to release it.
  /// - Throws: `StartError.inUse` if another process has it.
  package init(_ directory: DirectoryHandle, timeout: Duration = .zero) throws(StartError) {
    self.directory = directory
    let path = directory.path
    // NFS locks only what is open for writing (EBADF), and no directory can be. There the file
    // decides.
    let deadline = Deadline(in: timeout)
    if Self.lock(directory.descriptor, until: deadline) == -EWOULDBLOCK {
      throw .inUse(path: path)
    }
    do throws(SystemCallError) {
      file = try directory.open("lock", O_RDWR | O_CREAT, mode: 0o600)
      let isReplaced = try fileStatus(of: path)?.isSameFile(as: directory.status()) != true
      if isReplaced { throw SystemCallError("lock", on: path, code: ESTALE) }
    } catch { throw .directory(error) }
    if Self.lock(file, until: deadline) != 0 { throw .inUse(path: path) }
  }

  /// Tries to lock a file until the deadline has passed. It returns what flock(2) returned last, or
  /// the negative error number.
  private static func lock(_ file: Descriptor, until deadline: Deadline) -> Int {
    while true {
      let result = kernelResult { flock(file.raw, LOCK_EX | LOCK_NB) }
      if result != -EWOULDBLOCK || deadline.hasPassed { return Int(result) }
      pauseThread(for: .milliseconds(10))
    }
  }

  /// Releases the lock before the process has ended. A thread that waits for a file system that
  /// doesn't answer keeps the descriptors of its process open, although nothing else of the process
  /// is left.
  func release() {
    file.unlock()
    directory.descriptor.unlock()
  }
}
