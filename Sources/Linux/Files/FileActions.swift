import CLinux
import Glibc

/// Something has this name, as far as this process can look; a link counts where its target is there. `isAbsent`
/// is for what must be certain.
public func fileExists(_ path: String) -> Bool { access(path, F_OK) == 0 }

/// unlink(2).
public func removeFile(_ path: String) throws(SystemCallError) {
  try systemCall("unlink", path: path) { unlink($0) }
}

/// Removes a file if it is there; a failure is ignored. False: this call removed none.
@discardableResult
public func discardFile(_ path: String) -> Bool { unlink(path) == 0 }

/// Removes a directory if it is there and empty; a failure is ignored.
public func discardDirectory(_ path: String) { rmdir(path) }

/// stat(2), which follows links.
public func readStatus(of path: String) throws(SystemCallError) -> stat {
  var status = stat()
  try systemCall("stat", path: path) { stat($0, &status) }
  return status
}

/// The same; nil where nothing has this name, or it can't be looked at.
public func fileStatus(of path: String) -> stat? {
  var status = stat()
  return stat(path, &status) == 0 ? status : nil
}

/// lstat(2): of a link itself; nil where nothing has this name, or it can't be looked at.
public func linkStatus(of path: String) -> stat? {
  var status = stat()
  return lstat(path, &status) == 0 ? status : nil
}

extension stat {
  public var isRegularFile: Bool { st_mode & S_IFMT == S_IFREG }
  public var isDirectory: Bool { st_mode & S_IFMT == S_IFDIR }
  public var isFIFO: Bool { st_mode & S_IFMT == S_IFIFO }
  public var isSocket: Bool { st_mode & S_IFMT == S_IFSOCK }

  /// Two names or descriptors of one file.
  public func isSameFile(as other: stat) -> Bool {
    st_dev == other.st_dev && st_ino == other.st_ino
  }
}

/// Processors that are online, at least one.
public var onlineProcessors: Int { max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))) }

/// Waits on this thread, which does nothing else meanwhile; a signal's handler ends the wait early.
public func pauseThread(for duration: Duration) {
  let (seconds, attoseconds) = duration.components
  var time = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
  nanosleep(&time, nil)
}

/// mkdir(2).
///
/// - Returns: false where something has this name already.
@discardableResult
public func makeDirectory(_ path: String, mode: mode_t) throws(SystemCallError) -> Bool {
  let result = kernelResult(path) { mkdir($0, mode) }
  if result == -EEXIST { return false }
  try shim("mkdir", on: path) { result }
  return true
}
