import Glibc
import Linux

/// The file to which a worker's output is written. The worker writes to it directly, so the end of
/// the daemon breaks no pipe.
public struct WorkerLog: Sendable {
  public let descriptor: Descriptor
  /// The offset in bytes at which this launch's output begins.
  public let start: Int64

  /// Opens a log for appending. A log of more than `limit` bytes is renamed first. Never use a
  /// limit while the worker runs: it would still write to the old file.
  public static func open(
    _ destination: LogDestination, limit: Int64
  ) throws(SystemCallError) -> WorkerLog {
    let log = try append(destination)
    // Only a regular file can be rotated. `/dev/null`, for example, can't be.
    guard log.start > limit, log.descriptor.status?.isRegularFile == true else { return log }
    try destination.acting { () throws(SystemCallError) in
      if destination.keep == 0 {
        try removeFile(destination.path)
      } else {
        destination.shift()
        try renameFile(destination.path, to: destination.rotatedPath(1))
      }
    }
    return try append(destination)
  }

  private static func append(_ destination: LogDestination) throws(SystemCallError) -> WorkerLog {
    let file = try destination.acting { () throws(SystemCallError) in
      // O_NONBLOCK: the open doesn't wait for the other end of a FIFO.
      var flags = O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY
      // The directory belongs to the daemon, and the daemon makes no links in it.
      if !destination.isPathConfigured { flags |= O_NOFOLLOW }
      return try Descriptor.open(destination.path, flags, mode: 0o600)
    }
    let status = try file.readStatus(destination.path)
    // A program may open its output again (`/dev/stdout`). For that the file must belong to it. A
    // file that has another name, too, or isn't regular, wasn't made by the daemon.
    if let account = destination.account, !destination.isPathConfigured, status.st_nlink == 1,
      status.isRegularFile
    {
      try file.setOwner(
        user: account.identity.user, group: account.identity.group, path: destination.path)
    }
    // This clears O_NONBLOCK, which the worker would share with the daemon.
    try file.setFlags(O_APPEND)
    return WorkerLog(descriptor: file, start: Int64(status.st_size))
  }
}
