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
    _ place: LogPlace, limit: Int64
  ) throws(SystemCallError) -> WorkerLog {
    let log = try append(place)
    guard log.start > limit, log.isFile else { return log }
    try place.acting { () throws(SystemCallError) in
      if place.keep == 0 {
        try removeFile(place.path)
      } else {
        place.shift()
        try renameFile(place.path, to: place.aside(1))
      }
    }
    return try append(place)
  }

  /// Opens a log in the daemon's own directory of logs, with one old file.
  public static func open(
    _ path: String, limit: Int64
  ) throws(SystemCallError) -> WorkerLog {
    try open(LogPlace(path: path), limit: limit)
  }

  /// True for a regular file, which can be rotated. `/dev/null`, for example, can't be.
  private var isFile: Bool { descriptor.status?.isRegularFile == true }

  private static func append(_ place: LogPlace) throws(SystemCallError) -> WorkerLog {
    let file = try place.acting { () throws(SystemCallError) in
      // O_NONBLOCK: the open doesn't wait for the other end of a FIFO.
      var flags = O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY
      // The directory belongs to the daemon, and the daemon makes no links in it.
      if !place.isElsewhere { flags |= O_NOFOLLOW }
      return try Descriptor.open(place.path, flags, mode: 0o600)
    }
    let status = try file.readStatus(place.path)
    // A program may open its output again (`/dev/stdout`). For that the file must belong to it. A
    // file that has another name, too, or isn't regular, wasn't made by the daemon.
    if let account = place.account, !place.isElsewhere, status.st_nlink == 1,
      status.isRegularFile
    {
      try file.setOwner(
        user: account.identity.user, group: account.identity.group, path: place.path)
    }
    // This clears O_NONBLOCK, which the worker would share with the daemon.
    try file.setFlags(O_APPEND)
    return WorkerLog(descriptor: file, start: Int64(status.st_size))
  }
}

/// The location of a worker's log, and how many old files are kept.
public struct LogPlace: Hashable, Sendable {
  public var path: String
  /// The number of old files that are kept. `path.1` is the newest.
  public var keep: Int
  /// True if the configuration gives the path. Otherwise the log is in the daemon's own directory
  /// of logs, to which no other user can write.
  public var isElsewhere: Bool
  /// The user that the worker runs as, if that isn't the daemon's user.
  public var account: Account?

  public init(
    path: String, keep: Int = 1, isElsewhere: Bool = false, account: Account? = nil
  ) {
    self.path = path
    self.keep = keep
    self.isElsewhere = isElsewhere
    self.account = account
  }

  func aside(_ number: Int) -> String { "\(path).\(number)" }

  /// Runs `body` with the worker's own rights if the worker, or its user, could have put links in
  /// the path.
  func acting<Result>(
    _ body: () throws(SystemCallError) -> Result
  ) throws(SystemCallError) -> Result {
    guard isElsewhere, let account else { return try body() }
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
    let link = isElsewhere ? 0 : O_NOFOLLOW
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
      try watch.addWatch(to: path, followsLinks: isElsewhere)
    }
  }

  /// Renames the old logs, so that `path.1` is free. The oldest is removed.
  func shift() {
    var number = keep
    discardFile(aside(number))
    while number > 1 {
      // There may be no such file yet.
      try? renameFile(aside(number - 1), to: aside(number))
      number -= 1
    }
  }
}
