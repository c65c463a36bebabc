import CLinux
import Glibc

/// Making Unix sockets (unix(7)).
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

  /// The longest path that every program can use: sun_path has 108 bytes, one for the NUL.
  public static let maxPath = 107

  /// A non-blocking socket. A path that begins with `@` names an abstract socket, as in sd_notify(3). A path
  /// that is in use is taken over; a caller that must not displace another process checks before. Mode 0600.
  public static func bound(
    to path: String, _ kind: Kind
  ) throws(SystemCallError) -> Descriptor {
    // Descriptors that were sent to it and never read are closed with it.
    let socket = try make(kind, isForeign: true)
    if !path.hasPrefix("@") {
      // The file takes its mode from the socket, so that it never exists with a wider one.
      _ = try systemCall("fchmod", on: path) { fchmod(socket.raw, 0o600) }
      unlink(path)
    }
    try withAddress(path) { (address, length) throws(SystemCallError) in
      _ = try systemCall("bind", on: path) { bind(socket.raw, address, length) }
    }
    return socket
  }

  /// A stream socket at an unused name; EADDRINUSE otherwise. The file has exactly this mode, whatever the
  /// umask is, and never a wider one.
  public static func free(_ path: String, mode: mode_t) throws(SystemCallError) -> Descriptor {
    let socket = try make(.stream)
    // Not with umask(2), which would also be that of the other threads' files.
    _ = try systemCall("fchmod", on: path) { fchmod(socket.raw, mode) }
    try withAddress(path) { (address, length) throws(SystemCallError) in
      _ = try systemCall("bind", on: path) { bind(socket.raw, address, length) }
    }
    if !path.hasPrefix("@") {
      // The umask has removed permissions from it.
      try systemCall("chmod", path: path) { fchmodat(AT_FDCWD, $0, mode, AT_SYMLINK_NOFOLLOW) }
    }
    return socket
  }

  /// Connects to a path; EAGAIN if the listener's queue is full.
  public static func connected(
    to path: String, _ kind: Kind
  ) throws(SystemCallError) -> Descriptor {
    let socket = try make(kind)
    try withAddress(path) { (address, length) throws(SystemCallError) in
      _ = try systemCall("connect", on: path) { connect(socket.raw, address, length) }
    }
    return socket
  }

  /// Prevents other processes from sending descriptors to the socket, or to connections that it accepts, if
  /// the kernel supports that (Linux 6.16). On older kernels they arrive, and the receiver closes them with
  /// `Closer`.
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

  private static func withAddress(
    _ path: String,
    _ body: (UnsafePointer<sockaddr>, socklen_t) throws(SystemCallError) -> Void
  ) throws(SystemCallError) {
    var bytes = Array(path.utf8)
    guard !bytes.isEmpty, bytes.count <= maxPath, !bytes.contains(0) else {
      throw SystemCallError("bind", on: path, code: bytes.isEmpty ? EINVAL : ENAMETOOLONG)
    }
    // An abstract name ends with the address, any other with a NUL.
    if path.hasPrefix("@") { bytes[0] = 0 } else { bytes.append(0) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let length = MemoryLayout<sa_family_t>.size + bytes.count
    var failure: SystemCallError?
    withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { rebound in
        do throws(SystemCallError) {
          try body(rebound, socklen_t(length))
        } catch { failure = error }
      }
    }
    if let failure { throw failure }
  }
}
