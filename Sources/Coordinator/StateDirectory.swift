import CLinux
import Glibc
import Linux

/// Why the daemon can't start. Each case is one sentence for the person who started it.
public enum StartError: Error, Sendable, CustomStringConvertible {
  case directory(SystemCallError)
  case inUse(path: String)
  case socket(path: String, String)
  case system(SystemCallError)

  public var description: String {
    switch self {
    case .directory(let error): "the state directory can't be used: \(error)"
    case .inUse(let path):
      "another daemon is running with \(path); end that one with `dormouse shutdown`, or give this "
        + "one a --socket and a --state-directory of its own"
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

  init(path: String) throws(StartError) {
    self.path = path
    let lock: Descriptor
    do throws(SystemCallError) {
      try makeDirectories(path, mode: 0o700)
      for part in ["images", "logs", "workers", "jetsam"] {
        try makeDirectories("\(path)/\(part)", mode: 0o700)
      }
      lock = try Descriptor.open("\(path)/lock", O_RDWR | O_CREAT, mode: 0o600)
    } catch { throw .directory(error) }
    if flock(lock.raw, LOCK_EX | LOCK_NB) != 0 { throw .inUse(path: path) }
    self.lock = lock
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
  if mkdir(path, mode) != 0, errno != EEXIST {
    throw SystemCallError("mkdir", on: path, code: errno)
  }
}
