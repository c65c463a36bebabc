import Glibc

/// Whether a file of this name exists, as far as this process can see. A link counts if its target
/// exists. Use `isAbsent` if the answer must be certain.
public func fileExists(_ path: String) -> Bool { access(path, F_OK) == 0 }

/// Removes a file with unlink(2).
public func removeFile(_ path: String) throws(SystemCallError) {
  try systemCall("unlink", path: path) { unlink($0) }
}

/// Removes a file if it exists; a failure is ignored. It returns true if this call removed a file.
@discardableResult
public func discardFile(_ path: String) -> Bool { unlink(path) == 0 }

/// Removes a directory if it exists and is empty; a failure is ignored.
public func discardDirectory(_ path: String) { rmdir(path) }

/// Reads a file's status with stat(2), which follows links.
public func readStatus(of path: String) throws(SystemCallError) -> stat {
  var status = stat()
  try systemCall("stat", path: path) { stat($0, &status) }
  return status
}

/// The status of a file by stat(2), which follows links. It is nil if no file has this name, or if
/// it can't be examined.
public func fileStatus(of path: String) -> stat? {
  var status = stat()
  return stat(path, &status) == 0 ? status : nil
}

/// The status of a file or of a link itself by lstat(2). It is nil if no file has this name, or if
/// it can't be examined.
public func linkStatus(of path: String) -> stat? {
  var status = stat()
  return lstat(path, &status) == 0 ? status : nil
}

/// Resolves a path to one without links, `.` and `..` with realpath(3).
public func resolvedPath(_ path: String) throws(SystemCallError) -> String {
  let resolved = try pointerCall("realpath", path: path) { realpath($0, nil) }
  defer { free(resolved) }
  return String(cString: resolved)
}

extension stat {
  public var isRegularFile: Bool { st_mode & S_IFMT == S_IFREG }
  public var isDirectory: Bool { st_mode & S_IFMT == S_IFDIR }
  public var isFIFO: Bool { st_mode & S_IFMT == S_IFIFO }
  public var isSocket: Bool { st_mode & S_IFMT == S_IFSOCK }

  /// Whether both are the status of one file.
  public func isSameFile(as other: stat) -> Bool {
    st_dev == other.st_dev && st_ino == other.st_ino
  }
}

/// The number of processors that are online, at least 1.
public var onlineProcessors: Int { max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))) }

/// Blocks this thread for a time. A signal handler ends the wait early.
public func pauseThread(for duration: Duration) {
  let (seconds, attoseconds) = duration.components
  var time = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
  nanosleep(&time, nil)
}

/// Makes a directory with mkdir(2); the umask applies.
///
/// - Returns: false if a file has this name already.
@discardableResult
public func makeDirectory(_ path: String, mode: mode_t) throws(SystemCallError) -> Bool {
  let result = kernelResult(path) { mkdir($0, mode) }
  if result == -EEXIST { return false }
  try shim("mkdir", on: path) { result }
  return true
}

/// Writes bytes to standard error. A failure is ignored, because there is no other output to report
/// it.
public func writeToStandardError(_ bytes: [UInt8]) {
  if !bytes.isEmpty { _ = write(STDERR_FILENO, bytes, bytes.count) }
}
