import Glibc
import Linux

/// The file that a worker's output goes to. The worker writes it itself, so the daemon's death
/// breaks no pipe.
public struct WorkerLog: Sendable {
  public let descriptor: Descriptor
  /// Where this launch's output begins, in bytes.
  public let start: Int64

  /// Opens a log for appending. One over `limit` bytes becomes `path.1` first, in place of an older
  /// one. Never while the worker runs: it would go on writing to the old file.
  public static func open(
    _ path: String, limit: Int64
  ) throws(SystemCallError) -> WorkerLog {
    let log = try append(path)
    if log.start <= limit { return log }
    _ = try systemCall("rename", on: path) { rename(path, path + ".1") }
    return try append(path)
  }

  private static func append(_ path: String) throws(SystemCallError) -> WorkerLog {
    // No following of links: the directory is ours, and a link in it isn't from us.
    let file = try Descriptor.open(
      path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, mode: 0o600)
    var status = stat()
    _ = try systemCall("fstat", on: path) { fstat(file.raw, &status) }
    return WorkerLog(descriptor: file, start: Int64(status.st_size))
  }
}
