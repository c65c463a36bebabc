import CLinux
import Glibc

/// The kind of a socket and its traffic, from any descriptor of it.
public struct SocketFacts: Hashable, Sendable {
  /// The address family, such as AF_UNIX.
  public var family: Int32
  public var isStream: Bool
  public var isListening: Bool
  public var local: SocketName
  /// Empty if the socket isn't connected.
  public var peer: SocketName
  /// The number of unread bytes, or for a listener the number of connections that wait to be
  /// accepted. It is nil if the kernel doesn't report it.
  public var unread: Int64?
  /// The traffic of a TCP connection; nil for other sockets.
  public var traffic: Traffic?
  /// True for a TCP socket that was never connected. poll(2) reports a hang-up for it.
  public var isUnused: Bool
  /// For Unix sockets: the pid of the process that made the other end. Otherwise 0.
  public var peerProcess: Int32

  /// True if a single other end sends to the socket: a stream, one of a pair, or a datagram socket
  /// that is connected (a resolver, statsd, syslog(3)). Any program can send to other sockets.
  public var hasOnePeer: Bool { isStream || peer != .none || peerProcess > 0 }

  /// TCP's own counts in bytes (tcp(7), TCP_INFO).
  public struct Traffic: Hashable, Sendable {
    public var received: UInt64
    public var sent: UInt64
    /// The time since data was last received, or since the connection was made.
    public var sinceReceived: Duration
    /// The time since data was last sent, or since the connection was made.
    public var sinceSent: Duration
    /// The time since the other end's last acknowledgement. Each of its segments acknowledges what
    /// it has received, even a segment with data.
    public var sinceAcknowledged: Duration
  }

  /// Asks the kernel for the facts of a socket. It waits only for the socket's lock (`apart`).
  public static func read(_ socket: Descriptor) throws(SystemCallError) -> SocketFacts {
    var raw = clinux_socket()
    try shim("getsockopt", on: "a socket") { clinux_socket_facts(socket.raw, &raw) }
    let isStream = raw.type == Int32(SOCK_STREAM.rawValue)
    // A listening or unconnected socket has no counts.
    let isConnected = raw.is_tcp == 1 && raw.is_listening == 0
    return SocketFacts(
      family: raw.family, isStream: isStream, isListening: raw.is_listening == 1,
      local: SocketName.local(of: socket), peer: SocketName.peer(of: socket),
      unread: raw.unread < 0 ? nil : raw.unread,
      traffic: isConnected
        ? Traffic(
          received: raw.bytes_received, sent: raw.bytes_sent,
          sinceReceived: .milliseconds(Int64(raw.milliseconds_since_received)),
          sinceSent: .milliseconds(Int64(raw.milliseconds_since_sent)),
          sinceAcknowledged: .milliseconds(Int64(raw.milliseconds_since_acknowledged)))
        : nil,
      isUnused: isConnected && raw.tcp_state == closed && raw.bytes_received == 0
        && raw.bytes_sent == 0,
      peerProcess: raw.peer)
  }
}

/// TCP_CLOSE (linux/tcp_states.h).
private let closed: Int32 = 7

/// The address of one end of a socket.
public enum SocketName: Hashable, Sendable, CustomStringConvertible {
  case internet(host: String, port: UInt16)
  /// A path in the file system. An abstract name begins with `@`.
  case path(String)
  case none

  public var description: String {
    switch self {
    case .internet(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    case .path(let path): path
    case .none: "a nameless socket"
    }
  }

  /// True if other sockets can send to the address.
  public var isComplete: Bool {
    switch self {
    case .internet(_, let port): port != 0
    case .path: true
    case .none: false
    }
  }

  public static func local(of socket: Descriptor) -> SocketName {
    read { getsockname(socket.raw, $0, $1) }
  }
  static func peer(of socket: Descriptor) -> SocketName { read { getpeername(socket.raw, $0, $1) } }

  private static func read(
    _ call: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
  ) -> SocketName {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let result = withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { call($0, &length) }
    }
    guard result == 0 else { return .none }
    return withUnsafeBytes(of: &storage) {
      SocketName(UnsafeRawBufferPointer(rebasing: $0.prefix(Int(length))))
    }
  }

  /// Decodes a struct sockaddr_in, sockaddr_in6 or sockaddr_un.
  public init(_ address: UnsafeRawBufferPointer) {
    guard address.count > 2 else {
      self = .none
      return
    }
    // In both Internet families the port follows the family directly.
    func port() -> UInt16 { UInt16(address[2]) << 8 | UInt16(address[3]) }
    switch Int32(address.loadUnaligned(as: sa_family_t.self)) {
    case AF_INET where address.count >= 8:
      self = .internet(host: Self.host(AF_INET, address.dropFirst(4)), port: port())
    case AF_INET6 where address.count >= 24:
      self = .internet(host: Self.host(AF_INET6, address.dropFirst(8)), port: port())
    case AF_UNIX: self = Self.unix(address.dropFirst(2))
    default: self = .none
    }
  }

  private static func unix(_ bytes: Slice<UnsafeRawBufferPointer>) -> SocketName {
    if bytes.first == 0 {
      return .path("@" + String(decoding: bytes.dropFirst(), as: UTF8.self))
    }
    return .path(String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self))
  }

  private static func host(_ family: Int32, _ bytes: Slice<UnsafeRawBufferPointer>) -> String {
    var text = [CChar](repeating: 0, count: 64)
    guard
      inet_ntop(
        family, UnsafeRawBufferPointer(rebasing: bytes).baseAddress, &text, socklen_t(text.count))
        != nil
    else { return "?" }
    let host = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    return host.hasPrefix("::ffff:") ? String(host.dropFirst(7)) : host
  }
}
