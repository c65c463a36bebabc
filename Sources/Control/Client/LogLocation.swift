import Glibc
import Linux

/// Where a worker's output is, and with whose rights it is read.
public struct LogLocation: Hashable, Sendable {
  public var path: String
  /// A name or number. This user could exchange the file, so root opens it with this user's rights; nil: the file
  /// is in the daemon's own directory, or its worker runs as the daemon's user.
  public var user: String?

  public init(path: String, user: String? = nil) {
    (self.path, self.user) = (path, user)
  }

  /// nil: the worker has no log of its own.
  public init?(_ report: WorkerReport) {
    guard let log = report.log else { return nil }
    self.init(path: log, user: report.logUser)
  }

  /// Opens the log, or a file beside it, without waiting for the other end of a FIFO. Anything but a
  /// regular file is an error: a worker may have put it there.
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

  /// nil: the file is opened with the rights that this process has.
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
