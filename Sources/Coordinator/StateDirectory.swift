import CLinux
import Glibc
import Linux

/// Why the daemon can't start. Each case is one sentence for the person who started it.
public enum StartError: Error, Sendable, CustomStringConvertible {
  case directory(SystemCallError)
  case inUse(path: String)
  /// Somebody else could exchange what is in it.
  case unsafe(path: String, String)
  case socket(path: String, String)
  case system(SystemCallError)

  public var description: String {
    switch self {
    case .directory(let error): "the state directory can't be used: \(error)"
    case .inUse(let path):
      "another daemon is running with \(path); end that one with `dormouse shutdown`, or give this "
        + "one a --socket and a --state-directory of its own"
    case .unsafe(let path, let why): "the directory \(path) isn't safe: \(why)"
    case .socket(let path, let why): "can't listen at \(path): \(why)"
    case .system(let error): error.description
    }
  }
}

/// Where a daemon keeps what must outlive it. Private to its user (0700): images hold memory, and
/// logs what workers say.
struct StateDirectory {
  let path: String
  /// Held for the daemon's life (flock(2)): two daemons must never rule the same workers.
  private let lock: Descriptor

  var images: String { path + "/images" }
  var logs: String { path + "/logs" }
  var workers: String { path + "/workers" }
  var jetsam: String { path + "/jetsam" }
  var journal: String { path + "/journal" }
  var reports: String { path + "/reports" }
  /// See `SnapshotStore`.
  var snapshots: String { path + "/snapshots" }
  /// See `WriteLedger`.
  var writes: String { path + "/writes" }

  /// All that a daemon makes in it: directories without others in them, and files.
  static let parts = ["images", "logs", "workers", "jetsam", "journal", "reports", "snapshots"]
  static let files = ["lock", "writes", "memory", "schedule", "stopped"]

  init(path: String) throws(StartError) {
    self.path = path
    let lock: Descriptor
    do throws(SystemCallError) {
      try makeDirectories(path, mode: 0o700)
    } catch { throw .directory(error) }
    try checkTrust(in: path, mayBeShared: false)
    for part in Self.parts {
      try Self.makePrivate("\(path)/\(part)")
    }
    do throws(SystemCallError) {
      lock = try Descriptor.open("\(path)/lock", O_RDWR | O_CREAT, mode: 0o600)
    } catch { throw .directory(error) }
    if flock(lock.raw, LOCK_EX | LOCK_NB) != 0 { throw .inUse(path: path) }
    self.lock = lock
  }

  /// 0700, also where it was made earlier by somebody more generous.
  private static func makePrivate(_ path: String) throws(StartError) {
    do throws(SystemCallError) {
      try makeDirectories(path, mode: 0o700)
    } catch { throw .directory(error) }
    try checkTrust(in: path, mayBeShared: true)
    do throws(SystemCallError) { try systemCall("chmod", path: path) { chmod($0, 0o700) } } catch {
      throw .directory(error)
    }
  }

  func image(of worker: String) -> String { "\(images)/\(worker).image" }
  func log(of worker: String) -> String { "\(logs)/\(worker).log" }
}

/// Makes a directory and those above it.
func makeDirectories(_ path: String, mode: mode_t) throws(SystemCallError) {
  if access(path, F_OK) == 0 { return }
  if let slash = path.lastIndex(of: "/"), slash != path.startIndex {
    try makeDirectories(String(path[..<slash]), mode: mode)
  }
  let result = kernelResult(path) { mkdir($0, mode) }
  if result != 0, result != -EEXIST { throw SystemCallError("mkdir", on: path, code: -result) }
}

/// Refuses a directory in which somebody else could put something of theirs in the place of ours: an
/// image, a record, a socket. Directories under /tmp in particular can be made by anybody.
///
/// - Parameter mayBeShared: others may write to it if they can't remove what is ours (sticky, as /tmp
///   is), and root may work in anybody's.
func checkTrust(in path: String, mayBeShared: Bool) throws(StartError) {
  var link = stat()
  var directory = stat()
  do throws(SystemCallError) {
    try systemCall("stat", path: path) { lstat($0, &link) }
    try systemCall("stat", path: path) { stat($0, &directory) }
  } catch { throw .directory(error) }
  let user = geteuid()
  for owner in [link.st_uid, directory.st_uid] where owner != user && owner != 0 {
    if mayBeShared, user == 0 { continue }
    throw .unsafe(path: path, "it belongs to user \(owner); choose another")
  }
  let isSticky = directory.st_mode & S_ISVTX != 0
  let forbidden: mode_t = mayBeShared ? S_IWOTH : S_IWOTH | S_IWGRP
  if directory.st_mode & forbidden != 0, !(mayBeShared && isSticky) {
    throw .unsafe(path: path, "others may write to it; `chmod go-w` it, or choose another")
  }
}
