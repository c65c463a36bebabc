import CLinux
import Glibc

/// Makes Unix sockets (unix(7)). All of them are non-blocking and closed on execution.
public enum UnixSocket {
  public enum Kind: Hashable, Sendable {
    case stream, datagram, packets

    var type: __socket_type {
      switch self {
      case .stream: SOCK_STREAM
      case .datagram: SOCK_DGRAM
      case .packets: SOCK_SEQPACKET
      }
    }
  }

  /// The maximum length of a path in bytes that every program can use: sun_path has 108 bytes, one
  /// of them for the NUL.
  public static let maxPath = 107

  /// Makes a non-blocking socket with mode 0600 and binds it to a path. A path that begins with `@`
  /// names an abstract socket, as in sd_notify(3).
  ///
  /// A socket file at the path is replaced, even if another process uses it. A caller that must not
  /// displace another process checks that before.
  public static func bound(
    to path: String, _ kind: Kind
  ) throws(SystemCallError) -> Descriptor {
    // Descriptors that other processes sent to the socket and that weren't received are closed with
    // it.
    let socket = try make(kind, isForeign: true)
    if !path.hasPrefix("@") { unlink(path) }
    try bind(socket, to: path, mode: 0o600)
    return socket
  }

  /// The file gets its mode from the socket, so that it never exists with a wider mode.
  private static func bind(
    _ socket: Descriptor, to path: String, mode: mode_t
  ) throws(SystemCallError) {
    try socket.setMode(mode, path: path)
    try withAddress(path) { (address, length) throws(SystemCallError) in
      _ = try systemCall("bind", on: path) { Glibc.bind(socket.raw, address, length) }
    }
  }

  /// Makes a socket as `bound(to:_:)` does, with mode 0660 and a group. Its file never has a wider
  /// mode.
  public static func bound(
    to path: String, _ kind: Kind, group: gid_t
  ) throws(SystemCallError) -> Descriptor {
    let socket = try bound(to: path, kind)
    try systemCall("chown", path: path) { lchown($0, uid_t.max, group) }
    try systemCall("chmod", path: path) { fchmodat(AT_FDCWD, $0, 0o660, AT_SYMLINK_NOFOLLOW) }
    return socket
  }

  /// Makes a stream socket at an unused name, with exactly this mode whatever the umask is. The
  /// file never has a wider mode.
  ///
  /// - Throws: EADDRINUSE if the name is in use.
  public static func free(_ path: String, mode: mode_t) throws(SystemCallError) -> Descriptor {
    let socket = try make(.stream)
    // umask(2) isn't used: it would apply to the files of the other threads as well.
    try bind(socket, to: path, mode: mode)
    if !path.hasPrefix("@") {
      // The umask has removed permissions from the file.
      try systemCall("chmod", path: path) { fchmodat(AT_FDCWD, $0, mode, AT_SYMLINK_NOFOLLOW) }
    }
    return socket
  }

  /// Connects a new socket to a path.
  ///
  /// - Throws: EAGAIN if the listener's queue is full.
  public static func connected(
    to path: String, _ kind: Kind
  ) throws(SystemCallError) -> Descriptor {
    let socket = try make(kind)
    try withAddress(path) { (address, length) throws(SystemCallError) in
      _ = try systemCall("connect", on: path) { connect(socket.raw, address, length) }
    }
    return socket
  }

  /// Prevents other processes from sending descriptors to the socket, or to connections that it
  /// accepts, if the kernel supports that (Linux 6.16). On older kernels they arrive, and the
  /// receiver closes them with `Closer`.
  public static func refuseDescriptors(_ socket: Descriptor) {
    // Older kernels return ENOPROTOOPT; then `Reception` closes the descriptors that arrive.
    _ = clinux_refuse_descriptors(socket.raw)
  }

  private static func make(
    _ kind: Kind, isForeign: Bool = false
  ) throws(SystemCallError) -> Descriptor {
    let flags = kind.type.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
    let raw = try systemCall("socket") { socket(AF_UNIX, Int32(flags), 0) }
    return isForeign ? Descriptor(foreign: raw) : Descriptor(owning: raw)
  }

  /// Calls `body` with the address of a path, for bind(2) and connect(2).
  ///
  /// - Parameter isFile: whether a path that begins with `@` names a file, too.
  public static func withAddress(
    _ path: String, isFile: Bool = false,
    _ body: (UnsafePointer<sockaddr>, socklen_t) throws(SystemCallError) -> Void
  ) throws(SystemCallError) {
    var bytes = Array(path.utf8)
    guard !bytes.isEmpty, bytes.count <= maxPath, !bytes.contains(0) else {
      throw SystemCallError("bind", on: path, code: bytes.isEmpty ? EINVAL : ENAMETOOLONG)
    }
    // An abstract name ends where the address ends. A path ends with a NUL.
    if path.hasPrefix("@"), !isFile { bytes[0] = 0 } else { bytes.append(0) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let length = MemoryLayout<sa_family_t>.size + bytes.count
    try withUnsafePointer(to: &address) { (pointer) throws(SystemCallError) in
      try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        (rebound) throws(SystemCallError) in try body(rebound, socklen_t(length))
      }
    }
  }
}
