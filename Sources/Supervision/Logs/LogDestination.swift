import Glibc
import Linux

/// The location of a worker's log, and how many old files are kept.
public struct LogDestination: Hashable, Sendable {
  public var path: String
  /// The number of old files that are kept. `path.1` is the newest.
  public var keep: Int = 1
  /// True if the configuration gives the path. Otherwise the log is in the daemon's own directory
  /// of logs, to which no other user can write.
  public var isPathConfigured: Bool = false
  /// The user that the worker runs as, if that isn't the daemon's user.
  public var account: Account?

  func rotatedPath(_ number: Int) -> String { "\(path).\(number)" }

  /// Runs `body` with the worker's own rights if the worker, or its user, could have put links in
  /// the path.
  func acting<Result>(
    _ body: () throws(SystemCallError) -> Result
  ) throws(SystemCallError) -> Result {
    guard isPathConfigured, let account else { return try body() }
    return try account.acting(body)
  }

  /// Opens the log for reading, and passes it with its size in bytes to `body`. A worker may have
  /// replaced the log by anything. A file that isn't regular is an error (ESPIPE), and the call
  /// never waits for it.
  func reading<Result>(
    _ body: (_ file: Descriptor, _ size: Int64) throws(SystemCallError) -> Result
  ) throws(SystemCallError) -> Result {
    try acting { () throws(SystemCallError) in
      let file = try openRegular(O_RDONLY)
      return try body(file.file, Int64(file.status.st_size))
    }
  }

  /// Opens the log. It doesn't wait for the other end of a FIFO. In the daemon's own directory it
  /// doesn't follow a link, which the daemon wouldn't have made. Call it inside `acting`.
  func openRegular(_ flags: Int32) throws(SystemCallError) -> (file: Descriptor, status: stat) {
    let link = isPathConfigured ? 0 : O_NOFOLLOW
    let file = try Descriptor.open(path, flags | O_NONBLOCK | O_NOCTTY | link)
    let status = try file.readStatus(path)
    guard status.isRegularFile else {
      throw SystemCallError("read a file that isn't a regular one:", on: path, code: ESPIPE)
    }
    return (file, status)
  }

  /// Makes `watch` report the log's next write, once, under the number that is returned.
  public func awaitWrite(_ watch: WriteWatch) throws(SystemCallError) -> Int32 {
    try acting { () throws(SystemCallError) in
      try watch.addWatch(to: path, followsLinks: isPathConfigured)
    }
  }

  /// Renames the old logs, so that `path.1` is free. The oldest is removed.
  func shift() {
    var number = keep
    discardFile(rotatedPath(number))
    while number > 1 {
      // There may be no such file yet.
      try? renameFile(rotatedPath(number - 1), to: rotatedPath(number))
      number -= 1
    }
  }
}
