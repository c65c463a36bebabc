import CLinux
import Glibc

/// A socket or pipe that a process has open, as the links in `/proc/PID/fd` show it
/// (proc_pid_fd(5)).
public struct OpenDescriptor: Hashable, Sendable {
  public enum Kind: Hashable, Sendable {
    case socket
    /// Without a name.
    case pipe
    /// A pipe with a name in the file system.
    case fifo
  }

  public var number: Int32
  public var kind: Kind
  /// The kernel's number for the socket or pipe; the same in everybody who shares it.
  public var inode: UInt64
  public var isReadable: Bool
  public var isWritable: Bool

  /// Those of a process; files, terminals, and what has no other end (timers, events) are left
  /// out.
  public static func list(of pid: Int32) throws(SystemCallError) -> [OpenDescriptor] {
    let directory = "/proc/\(pid)/fd"
    return try listNumbers(directory).compactMap { number in
      read("\(directory)/\(number)", number)
    }
  }

  /// nil as well when it has been closed meanwhile.
  private static func read(_ path: String, _ number: Int32) -> OpenDescriptor? {
    var bytes = [UInt8](repeating: 0, count: 256)
    let length = readlink(path, &bytes, bytes.count)
    guard length > 0, let (kind, inode) = parse(bytes[..<length], path) else { return nil }
    var status = stat()
    // The link's own mode says what the descriptor was opened for.
    guard lstat(path, &status) == 0 else { return nil }
    return OpenDescriptor(
      number: number, kind: kind, inode: inode, isReadable: status.st_mode & S_IRUSR != 0,
      isWritable: status.st_mode & S_IWUSR != 0)
  }

  private static func parse(_ link: ArraySlice<UInt8>, _ path: String) -> (Kind, UInt64)? {
    for (prefix, kind) in [("socket:[", Kind.socket), ("pipe:[", .pipe)]
    where link.starts(with: prefix.utf8) {
      let number: UInt64? = link.dropFirst(prefix.utf8.count).dropLast().number()
      return number.map { (kind, $0) }
    }
    guard link.first == UInt8(ascii: "/"), clinux_is_fifo(path) == 1 else { return nil }
    var status = stat()
    return stat(path, &status) == 0 ? (.fifo, UInt64(status.st_ino)) : nil
  }

  /// A duplicate of it in this process (pidfd_getfd(2)); works on frozen and stopped processes. It
  /// takes the right to trace.
  public func duplicate(from pidfd: Descriptor) throws(SystemCallError) -> Descriptor {
    Descriptor(
      owning: try shim("pidfd_getfd", on: "descriptor \(number)") {
        clinux_pidfd_getfd(pidfd.raw, number)
      })
  }
}

extension Descriptor {
  /// What poll(2) says of its input: data, a connection, a hang-up; 0: nothing.
  public var inputEvents: Int16 {
    var entry = pollfd(fd: raw, events: Int16(POLLIN) | Int16(CLINUX_EPOLLRDHUP), revents: 0)
    return poll(&entry, 1, 0) > 0 ? entry.revents : 0
  }

  /// Of a pipe; nil where the kernel doesn't tell.
  public var unreadBytes: Int64? {
    let count = clinux_unread_bytes(raw)
    return count < 0 ? nil : count
  }
}
