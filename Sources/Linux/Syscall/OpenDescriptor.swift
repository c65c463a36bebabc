import CLinux
import Glibc

/// A descriptor of a process at which input from outside can arrive, as the links in `/proc/PID/fd`
/// show it (proc_pid_fd(5)).
public struct OpenDescriptor: Hashable, Sendable {
  public enum Kind: Hashable, Sendable {
    case socket
    /// A pipe without a name.
    case pipe
    /// A pipe with a name in the file system.
    case fifo
    /// An instance of inotify(7), which reports changes to files.
    case inotify
    /// An instance of fanotify(7), which reports changes to files, and requests to permit an
    /// access.
    case fanotify
    /// A ring of io_uring(7). It is readable while it has completions that the program hasn't read.
    case ring
    /// A character device: a terminal, a serial line, an input device, /dev/fuse. Its number has
    /// the form of `tty_nr` in proc_pid_stat(5).
    case device(number: Int32)

    /// True for a terminal, whose input is the same at each of its descriptors. Other devices may
    /// have other input for each open(2): a mount for /dev/fuse, a terminal for /dev/ptmx.
    public var isTerminal: Bool {
      guard case .device(let number) = self else { return false }
      let (major, minor) = (number >> 8 & 0xfff, number & 0xff)
      // Consoles; /dev/tty and /dev/console, but not /dev/ptmx; pseudoterminals.
      return major == 4 || major == 5 && minor != 2 || (136...143).contains(major)
    }
  }

  public var number: Int32
  public var kind: Kind
  /// The kernel's number for the socket, pipe or device node. It is the same in each process that
  /// shares the object. All inotify and fanotify descriptors have one number in common.
  public var inode: UInt64
  public var isReadable: Bool
  public var isWritable: Bool

  /// Lists the descriptors of a process. Files and descriptors without another end (timers, events)
  /// are left out.
  public static func list(of pid: Int32) throws(SystemCallError) -> [OpenDescriptor] {
    let directory = "/proc/\(pid)/fd"
    return try listNumbers(directory).compactMap { number in
      read("\(directory)/\(number)", number)
    }
  }

  /// The result is nil if input can't arrive there, or if the descriptor has been closed meanwhile.
  private static func read(_ path: String, _ number: Int32) -> OpenDescriptor? {
    var bytes = [UInt8](repeating: 0, count: 256)
    let length = readlink(path, &bytes, bytes.count)
    guard length > 0, let (kind, inode) = parse(bytes[..<length], path) else { return nil }
    var status = stat()
    // The link's own mode shows for what the descriptor was opened.
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
    for (name, kind) in [
      ("inotify", Kind.inotify), ("[fanotify]", .fanotify), ("[io_uring]", .ring),
    ]
    where link.elementsEqual("anon_inode:\(name)".utf8) {
      return type(of: path).map { (kind, $0.inode) }
    }
    guard link.first == UInt8(ascii: "/"), let type = type(of: path) else { return nil }
    if type.is_fifo != 0 { return (.fifo, type.inode) }
    if type.is_character_device != 0, type.major != memoryDevices {
      return (.device(number: deviceNumber(type)), type.inode)
    }
    return nil
  }

  /// The major number of /dev/null, /dev/zero, /dev/urandom and similar devices, which can always
  /// be read.
  private static let memoryDevices: UInt32 = 1

  private static func type(of path: String) -> clinux_file_type? {
    var type = clinux_file_type()
    return clinux_file_type(path, &type) == 0 ? type : nil
  }

  /// The kernel's own encoding: the low byte of the minor number, the major number, the remaining
  /// bits of the minor number.
  private static func deviceNumber(_ type: clinux_file_type) -> Int32 {
    Int32(
      truncatingIfNeeded: type.minor & 0xff | type.major << 8 | (type.minor & ~0xff) << 12)
  }

  /// Duplicates the descriptor into this process (pidfd_getfd(2)). It works for frozen and stopped
  /// processes too. It needs the right to trace the process.
  public func duplicate(from pidfd: Descriptor) throws(SystemCallError) -> Descriptor {
    Descriptor(
      foreign: try shim("pidfd_getfd", on: "descriptor \(number)") {
        clinux_pidfd_getfd(pidfd.raw, number)
      })
  }
}

extension Descriptor {
  /// The events that poll(2) reports about the descriptor's input (data, a connection, a hang-up);
  /// 0: none.
  public var inputEvents: Int16 { Self.inputEvents(of: raw) }

  /// The events that poll(2) reports about the input of a descriptor that no `Descriptor` owns.
  public static func inputEvents(of raw: Int32) -> Int16 {
    var entry = pollfd(fd: raw, events: Int16(POLLIN) | Int16(CLINUX_EPOLLRDHUP), revents: 0)
    return poll(&entry, 1, 0) > 0 ? entry.revents : 0
  }

  public var isTerminal: Bool { clinux_is_terminal(raw) == 1 }

  /// The number of unread bytes of a pipe, terminal or inotify queue; nil if the kernel doesn't
  /// report it.
  public var unreadBytes: Int64? {
    let count = clinux_unread_bytes(raw)
    return count < 0 ? nil : count
  }
}
