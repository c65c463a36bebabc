import Glibc
import Linux

/// The file that a worker's output is written to. The worker writes it itself, so the daemon's death breaks no
/// pipe.
public struct WorkerLog: Sendable {
  public let descriptor: Descriptor
  /// Where this launch's output begins, in bytes.
  public let start: Int64

  /// Opens a log for appending. A log over `limit` bytes is renamed first. Never use a limit while the worker
  /// runs: it would still write to the old file.
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

  /// In the daemon's own directory of logs, with one old file.
  public static func open(
    _ path: String, limit: Int64
  ) throws(SystemCallError) -> WorkerLog {
    try open(LogPlace(path: path), limit: limit)
  }

  /// A regular file can be rotated; `/dev/null`, for example, can't.
  private var isFile: Bool { descriptor.status?.isRegularFile == true }

  private static func append(_ place: LogPlace) throws(SystemCallError) -> WorkerLog {
    let file = try place.acting { () throws(SystemCallError) in
      // Without waiting for the other end of a FIFO.
      var flags = O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY
      // The directory is the daemon's, and the daemon made no link in it.
      if !place.isElsewhere { flags |= O_NOFOLLOW }
      return try Descriptor.open(place.path, flags, mode: 0o600)
    }
    let status = try file.readStatus(place.path)
    // A program may open its output again (`/dev/stdout`), for which the file must be its own. A file that has
    // another name too, or isn't regular, wasn't made by the daemon.
    if let account = place.account, !place.isElsewhere, status.st_nlink == 1,
      status.isRegularFile
    {
      try file.setOwner(
        user: account.identity.user, group: account.identity.group, path: place.path)
    }
    // Without O_NONBLOCK, which the worker would share with us.
    try file.setFlags(O_APPEND)
    return WorkerLog(descriptor: file, start: Int64(status.st_size))
  }
}

/// Where a worker's output is written, and how much of it is kept.
public struct LogPlace: Hashable, Sendable {
  public var path: String
  /// Old files that are kept, `path.1` being the newest.
  public var keep: Int
  /// The configuration named it: it isn't in the daemon's own directory of logs, which no other user can write
  /// to.
  public var isElsewhere: Bool
  /// The user that the worker runs as, if that isn't the daemon's.
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

  /// With the worker's own rights where the worker, or its user, could have put links in the way.
  func acting<Result>(
    _ body: () throws(SystemCallError) -> Result
  ) throws(SystemCallError) -> Result {
    guard isElsewhere, let account else { return try body() }
    return try account.acting(body)
  }

  /// Opens the log for reading, and gives it with its size to `body`. A worker may have put anything in
  /// its place: what isn't a regular file is an error (ESPIPE), and is never waited for.
  func reading<Result>(
    _ body: (_ file: Descriptor, _ size: Int64) throws(SystemCallError) -> Result
  ) throws(SystemCallError) -> Result {
    try acting { () throws(SystemCallError) in
      let file = try openRegular(O_RDONLY)
      return try body(file.file, Int64(file.status.st_size))
    }
  }

  /// The log, without waiting for the other end of a FIFO, and in our own directory without following
  /// a link, which wouldn't be from us. To be called inside `acting`.
  func openRegular(_ flags: Int32) throws(SystemCallError) -> (file: Descriptor, status: stat) {
    let link = isElsewhere ? 0 : O_NOFOLLOW
    let file = try Descriptor.open(path, flags | O_NONBLOCK | O_NOCTTY | link)
    let status = try file.readStatus(path)
    guard status.isRegularFile else {
      throw SystemCallError("read a file that isn't a regular one:", on: path, code: ESPIPE)
    }
    return (file, status)
  }

  /// The log's next write is reported by `watch`, once, under the number that is returned.
  public func awaitWrite(_ watch: WriteWatch) throws(SystemCallError) -> Int32 {
    try acting { () throws(SystemCallError) in
      try watch.awaitWrite(to: path, followsLinks: isElsewhere)
    }
  }

  /// Makes `path.1` free; the oldest log is removed.
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
