import Glibc
import Linux
import Supervision

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
  /// The workers' records can't be kept.
  case records(WorkerRecordError)
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
    case .records(let error): error.description
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
  /// The directory of `SnapshotKeeper`.
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

  /// Whether a later daemon may find an image here. The volume of a sleeping worker's image may not
  /// be mounted now: then the directory is empty, or can't be read.
  func mayHaveImages(of records: [WorkerRecord]) -> Bool {
    records.contains { $0.imagePath != nil } || (try? listDirectory(images))?.isEmpty != true
  }

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

  /// Tries to lock a file until the deadline has passed. Then it releases the lock of a killed
  /// daemon that can't end (`AbandonedLocks`), and tries once more. It returns what flock(2)
  /// returned last, or the negative error number.
  private static func lock(_ file: Descriptor, until deadline: Deadline) -> Int {
    while true {
      let result = kernelResult { flock(file.raw, LOCK_EX | LOCK_NB) }
      if result != -EWOULDBLOCK { return Int(result) }
      if deadline.hasPassed {
        guard AbandonedLocks.release(on: file) else { return Int(result) }
        return Int(kernelResult { flock(file.raw, LOCK_EX | LOCK_NB) })
      }
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

/// The files of a worker's output, in the directory of logs.
enum WorkerLogs {
  /// Removes the files. It waits for the disk. A file that can't be removed stays, and the next
  /// worker of this name writes to it.
  ///
  /// - Returns: the first failure; nil if there was none.
  static func remove(of worker: String, from directory: String) -> SystemCallError? {
    var failure: SystemCallError?
    do throws(SystemCallError) {
      for file in try listDirectory(directory) where isLog(file, of: worker) {
        do throws(SystemCallError) { try removeFile("\(directory)/\(file)") } catch {
          if error.code != ENOENT { failure = failure ?? error }
        }
      }
    } catch { return error.code == ENOENT ? nil : error }
    return failure
  }

  /// Whether a file belongs to the worker: `web.log`, `web.times`, or a rotated log such as
  /// `web.log.1`. Another worker may be called `web.log.1`.
  static func isLog(_ file: String, of worker: String) -> Bool {
    if file == "\(worker).log" || file == "\(worker).times" { return true }
    let lead = "\(worker).log."
    guard file.hasPrefix(lead), file.count > lead.count else { return false }
    return file.dropFirst(lead.count).allSatisfy { ("0"..."9").contains($0) }
  }
}
