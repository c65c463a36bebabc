import Glibc
import Linux

/// A numeric IPv4 or IPv6 address and a port. Names aren't resolved: that can take seconds, and
/// would block the event loop.
package struct InternetAddress {
  let family: Int32
  private let bytes: [UInt8]

  /// `localhost` is 127.0.0.1. Returns nil if `host` is not a numeric address.
  package init?(_ host: String, _ port: UInt16) {
    let host = host == "localhost" ? "127.0.0.1" : host
    var ipv4 = in_addr()
    var ipv6 = in6_addr()
    if inet_pton(AF_INET, host, &ipv4) == 1 {
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = port.bigEndian
      address.sin_addr = ipv4
      family = AF_INET
      bytes = withUnsafeBytes(of: &address) { Array($0) }
    } else if inet_pton(AF_INET6, host, &ipv6) == 1 {
      var address = sockaddr_in6()
      address.sin6_family = sa_family_t(AF_INET6)
      address.sin6_port = port.bigEndian
      address.sin6_addr = ipv6
      family = AF_INET6
      bytes = withUnsafeBytes(of: &address) { Array($0) }
    } else {
      return nil
    }
  }

  /// The address as the kernel names it.
  var name: SocketName { bytes.withUnsafeBytes { SocketName($0) } }

  func withPointer(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
    // The bytes of an array needn't be aligned as the struct requires.
    var storage = sockaddr_storage()
    withUnsafeMutableBytes(of: &storage) { $0.copyBytes(from: bytes) }
    return withUnsafePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(bytes.count))
      }
    }
  }

  /// Connects a socket of this family. One that doesn't block may fail with EINPROGRESS.
  ///
  /// - Parameter subject: what an error names.
  package func connect(_ socket: Descriptor, on subject: String = "") throws(SystemCallError) {
    _ = try systemCall("connect", on: subject) {
      withPointer { Glibc.connect(socket.raw, $0, $1) }
    }
  }

  /// The local port of a socket, or nil if it isn't an IPv4 or IPv6 socket.
  static func localPort(of socket: Descriptor) -> UInt16? {
    guard case .internet(_, let port) = SocketName.local(of: socket) else { return nil }
    return port
  }
}
