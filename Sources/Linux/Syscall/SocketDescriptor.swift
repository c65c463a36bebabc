import CLinux
import Glibc

/// The process at the other end of a Unix socket, as the kernel recorded it at connect(2) or
/// listen(2) (SO_PEERCRED, unix(7)).
public struct PeerCredentials: Hashable, Sendable {
  /// It is 0 if the process is in a pid namespace that this process can't see.
  public let process: pid_t
  public let user: uid_t

  /// Reads the credentials from an open socket.
  public init(of socket: Int32) throws(SystemCallError) {
    var (pid, user, group): (pid_t, uid_t, gid_t) = (0, 0, 0)
    try shim("getsockopt") { clinux_peer_credentials(socket, &pid, &user, &group) }
    process = pid
    self.user = user
  }
}

/// Operations on an open socket.
extension Descriptor {
  /// Makes two sockets that are connected with each other.
  public static func socketPair(
    _ kind: UnixSocket.Kind, isBlocking: Bool = true
  ) throws(SystemCallError) -> (Descriptor, Descriptor) {
    var ends: [Int32] = [-1, -1]
    let flags = SOCK_CLOEXEC.rawValue | (isBlocking ? 0 : SOCK_NONBLOCK.rawValue)
    let type = Int32(kind.type.rawValue | flags)
    _ = try systemCall("socketpair") { socketpair(AF_UNIX, type, 0, &ends) }
    return (Descriptor(owning: ends[0]), Descriptor(owning: ends[1]))
  }

  /// Makes a socket of an address family and type; `O_CLOEXEC` is set.
  public static func socket(
    family: Int32, type: __socket_type, isBlocking: Bool = true
  ) throws(SystemCallError) -> Descriptor {
    let flags = SOCK_CLOEXEC.rawValue | (isBlocking ? 0 : SOCK_NONBLOCK.rawValue)
    return Descriptor(
      owning: try systemCall("socket") { Glibc.socket(family, Int32(type.rawValue | flags), 0) })
  }

  public func listen(backlog: Int32, path: String = "") throws(SystemCallError) {
    _ = try systemCall("listen", on: path) { Glibc.listen(raw, backlog) }
  }

  /// Calls send(2) once. It returns how many bytes the kernel accepted, or the error as a negative
  /// number. If the other end is closed, there is no SIGPIPE.
  public func send(_ bytes: UnsafeRawBufferPointer, waits: Bool) -> Int {
    let flags = Int32(MSG_NOSIGNAL) | (waits ? 0 : Int32(MSG_DONTWAIT))
    return kernelResult { Glibc.send(raw, bytes.baseAddress, bytes.count, flags) }
  }

  public func send(_ bytes: [UInt8], waits: Bool) -> Int {
    bytes.withUnsafeBytes { send($0, waits: waits) }
  }

  /// Sends all bytes, and waits until the kernel has accepted them.
  public func sendAll(_ bytes: [UInt8], on subject: String = "") throws(SystemCallError) {
    var remaining = bytes[...]
    while !remaining.isEmpty {
      let count = try shim("send", on: subject) {
        remaining.withUnsafeBytes { send($0, waits: true) }
      }
      remaining = remaining.dropFirst(count)
    }
  }

  /// The error with which a connection attempt ended, as in errno(3). It is 0 if the socket is
  /// connected. Reading it clears it in the kernel.
  public var connectionError: Int32 {
    var code: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    let result = kernelResult { getsockopt(raw, SOL_SOCKET, SO_ERROR, &code, &length) }
    return result == 0 ? code : -result
  }

  /// Sets a Boolean option with setsockopt(2). A kernel that doesn't support it leaves the socket
  /// as it is.
  public func setOption(_ level: Int32, _ name: Int32, to isOn: Bool) {
    var value: Int32 = isOn ? 1 : 0
    setsockopt(raw, level, name, &value, socklen_t(MemoryLayout<Int32>.size))
  }

  /// Whether root, or this process's own user, is at the other end of a Unix socket.
  public var hasTrustedPeer: Bool {
    // An error counts as no.
    let user = (try? PeerCredentials(of: raw))?.user
    return user == 0 || user == geteuid()
  }

  /// Shuts down this side's output: the other end then reads its end of file.
  public func endOutput() { shutdown(raw, Int32(SHUT_WR)) }
}
