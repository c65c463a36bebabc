import Linux

/// Why the daemon can't start. Each case has one sentence for the operator.
public enum StartError: Error, Sendable, CustomStringConvertible {
  /// The state directory can't be used.
  case directory(SystemCallError)
  /// Another daemon runs with this state directory.
  case inUse(path: String)
  /// Another user could exchange the files in the directory.
  case unsafe(path: String, String)
  /// The daemon can't listen at this socket.
  case socket(path: String, String)
  /// A system call failed.
  case system(SystemCallError)

  public var description: String {
    switch self {
    case .directory(let error): "can't use the state directory: \(error)"
    case .inUse(let path):
      "another daemon is running with \(path); stop it with `dormouse shutdown`, or give this "
        + "daemon another --socket and --state-directory"
    case .unsafe(let path, let reason): "the directory \(path) is not safe: \(reason)"
    case .socket(let path, let reason): "can't listen at \(path): \(reason)"
    case .system(let error): error.description
    }
  }
}

/// The directory of the files that must outlive the daemon. It is private to its user (0700):
/// images contain memory, and logs contain workers' output.
package struct StateDirectory {
  let path: String
  /// The lock, which the daemon has for all its life.
  private let lock: StateLock

  var images: String { path + "/images" }
  var logs: String { path + "/logs" }
  var workers: String { path + "/workers" }
  var jetsam: String { path + "/jetsam" }
  var journal: String { path + "/journal" }
  var reports: String { path + "/reports" }
  private var calls: String { path + "/calls" }
  /// The directory of `SnapshotStore`.
  var snapshots: String { path + "/snapshots" }
  /// The file of `WriteLedger`.
  var writes: String { path + "/writes" }

  /// The directories that a daemon creates in it, which contain no other directories.
  package static let directories = [
    "images", "logs", "workers", "jetsam", "journal", "reports", "snapshots", "calls",
    "trims",
  ]
  /// The files that a daemon creates in it, outside of these directories.
  package static let files = ["lock", "writes", "memory", "schedule", "stopped"]

  init(path: String) throws(StartError) {
    self.path = path
    let directory = try openTrusted(path, making: true, as: .exclusive)
    for name in Self.directories {
      let name = try openTrusted("\(path)/\(name)", making: true, as: .shared)
      // This also corrects a directory that was made earlier for more users.
      do throws(SystemCallError) { try name.setMode(0o700) } catch { throw .directory(error) }
    }
    lock = try StateLock(directory, timeout: StateLock.timeout)
    CallsBeforeStop.keep(in: calls)
  }

  /// Unlocks the directory as a daemon's last act, so that the next one may start even if this
  /// process can't end yet. If the disk doesn't answer, a file of this daemon may still be written
  /// later, so the directory stays locked.
  func unlock(after services: Services) {
    services.log.drain()
    if services.disk.drain(within: .seconds(1)) { lock.release() }
  }

  func image(of worker: String) -> String { "\(images)/\(worker).image" }
  /// The file that a daemon keeps locked (`StateLock`).
  var lockPath: String { "\(path)/lock" }
  /// The file that exists while a thread of the worker is borrowed for a trim.
  func trimRecord(of worker: String) -> String { "\(path)/trims/\(worker)" }
  func log(of worker: String) -> String { "\(logs)/\(worker).log" }
  /// The file of `LogTimes`.
  func logTimes(of worker: String) -> String { "\(logs)/\(worker).times" }
}

/// Opens a directory in which no other user can exchange the daemon's files: an image, a record, a
/// socket. Any user can make directories under /tmp, for example. For root this holds for each
/// directory of the path; see `DirectoryTrust`. The call waits for the file system.
///
/// - Parameter making: whether to make missing directories, with mode 0700.
/// - Throws: `StartError.directory` if it can't be opened, `StartError.unsafe` if another user
///   could exchange files.
package func openTrusted(
  _ path: String, making: Bool = false, as last: DirectoryTrust.Sharing
) throws(StartError) -> DirectoryHandle {
  do throws(DirectoryTrustError) {
    return try DirectoryTrust.ofThisProcess.open(path, making: making ? 0o700 : nil, as: last)
  } catch {
    switch error {
    case .failed(let failure): throw .directory(failure)
    case .untrusted(let path, let flaw): throw .unsafe(path: path, flaw.description)
    }
  }
}
