import CLinux
import Glibc
import Linux

/// Why the daemon can't start. Each case is one sentence for the operator.
public enum StartError: Error, Sendable, CustomStringConvertible {
  case directory(SystemCallError)
  case inUse(path: String)
  /// Another user could exchange what is in it.
  case unsafe(path: String, String)
  case socket(path: String, String)
  case system(SystemCallError)

  public var description: String {
    switch self {
    case .directory(let error): "can't use the state directory: \(error)"
    case .inUse(let path):
      "another daemon is running with \(path); stop it with `dormouse shutdown`, or give this "
        + "daemon another --socket and --state-directory"
    case .unsafe(let path, let why): "the directory \(path) is not safe: \(why)"
    case .socket(let path, let why): "can't listen at \(path): \(why)"
    case .system(let error): error.description
    }
  }
}

/// Where a daemon keeps the files that must outlive it. Private to its user (0700): images hold memory, and
/// logs hold workers' output.
package struct StateDirectory {
  let path: String
  /// Held for the daemon's life.
  private let lock: StateLock

  var images: String { path + "/images" }
  var logs: String { path + "/logs" }
  var workers: String { path + "/workers" }
  var jetsam: String { path + "/jetsam" }
  var journal: String { path + "/journal" }
  var reports: String { path + "/reports" }
  private var calls: String { path + "/calls" }
  /// See `SnapshotStore`.
  var snapshots: String { path + "/snapshots" }
  /// The socket of `DescriptorKeeper`.
  var keeper: String { path + "/keeper.sock" }
  /// See `WriteLedger`.
  var writes: String { path + "/writes" }

  /// All that a daemon makes in it: directories that contain no other directories, and files.
  package static let parts = [
    "images", "logs", "workers", "jetsam", "journal", "reports", "snapshots", "calls",
  ]
  package static let files = ["lock", "writes", "memory", "schedule", "stopped"]

  init(path: String) throws(StartError) {
    self.path = path
    let directory = try openTrusted(path, making: true, as: .own)
    for part in Self.parts {
      let part = try openTrusted("\(path)/\(part)", making: true, as: .shared)
      // Also where it was made earlier, and for more users.
      do throws(SystemCallError) { try part.setMode(0o700) } catch { throw .directory(error) }
    }
    lock = try StateLock(directory)
    CallsBeforeStop.keep(in: calls)
  }

  /// The last act of a daemon: the next one may start, even if this process can't end yet. While the disk doesn't answer,
  /// a file of this daemon may still be written later, so it stays locked.
  func unlock(after services: Services) {
    services.log.drain()
    if services.disk.drain(within: .seconds(1)) { lock.release() }
  }

  func image(of worker: String) -> String { "\(images)/\(worker).image" }
  func log(of worker: String) -> String { "\(logs)/\(worker).log" }
  /// See `LogTimes`.
  func logTimes(of worker: String) -> String { "\(logs)/\(worker).times" }
}

/// Opens a directory in which no other user could exchange the daemon's files: an image, a record, a socket.
/// Any user can make directories under /tmp, for example. For root this holds for each directory of the path;
/// see `DirectoryTrust`.
///
/// - Parameter making: makes the directories that are missing, with mode 0700.
package func openTrusted(
  _ path: String, making: Bool = false, as last: DirectoryTrust.Last
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
