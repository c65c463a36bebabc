import Glibc
import Linux

/// The path of a worker's output, and the user with whose rights it is read.
public struct LogLocation: Hashable, Sendable {
  public var path: String
  /// The user's name or number. This user could replace the file, so root opens it with this user's
  /// rights. It is nil if the file is in the daemon's own directory, or its worker runs as the
  /// daemon's user.
  public var user: String?

  public init(path: String, user: String? = nil) {
    (self.path, self.user) = (path, user)
  }

  /// Returns nil if the worker has no log of its own.
  public init?(_ report: WorkerReport) {
    guard let log = report.log else { return nil }
    self.init(path: log, user: report.logUser)
  }

  /// Opens the log, or a file beside it. It doesn't wait for the other end of a FIFO. A file that
  /// isn't regular is an error: a worker may have put it there.
  package func open(suffix: String = "") throws(FileError) -> Descriptor {
    let name = path + suffix
    let account = try account()
    let file = try FileError.wrap("opening", on: name) { () throws(SystemCallError) in
      func openFile() throws(SystemCallError) -> Descriptor {
        try Descriptor.open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY)
      }
      guard let account else { return try openFile() }
      return try account.acting(openFile)
    }
    guard file.status?.isRegularFile == true else {
      throw FileError(operation: "opening as a regular file", path: name, code: EINVAL)
    }
    return file
  }

  /// The account of `user`, or nil if the file is opened with the rights of this process.
  private func account() throws(FileError) -> Account? {
    guard let user, geteuid() == 0 else { return nil }
    do throws(AccountError) { return try Account(user: user, group: nil) } catch {
      guard case .noGroup = error else { throw unknown }
    }
    // A number without an entry has no group, and needs none to read its own file.
    do throws(AccountError) { return try Account(user: user, group: "65534") } catch {
      throw unknown
    }
  }

  private var unknown: FileError {
    FileError(operation: "looking up the user of", path: path, code: ENOENT)
  }
}
