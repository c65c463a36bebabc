import Glibc

/// Why nobody can be listened to.
struct ServerError: Error, CustomStringConvertible {
  let description: String

  init(_ what: String) {
    description = "breadcrumbs: \(what): \(String(cString: strerror(errno)))"
  }
}

/// A socket that listens; for the life of the program.
struct ServerSocket {
  let descriptor: Int32

  /// The one that was handed to us, or one of our own; `nil`: none is wanted.
  static func wanted(_ port: UInt16?) throws(ServerError) -> ServerSocket? {
    if let handed = inherited() { return handed }
    guard let port else { return nil }
    return try loopback(port: port)
  }

  /// The first of `LISTEN_FDS` (sd_listen_fds(3)), where they are meant for us: it is there before the
  /// program runs, and stays when it ends.
  private static func inherited() -> ServerSocket? {
    func number(_ name: String) -> Int32? { getenv(name).flatMap { Int32(String(cString: $0)) } }
    guard number("LISTEN_PID") == getpid(), let count = number("LISTEN_FDS"), count > 0 else {
      return nil
    }
    _ = fcntl(3, F_SETFD, FD_CLOEXEC)
    return ServerSocket(descriptor: 3)
  }

  private static func loopback(port: UInt16) throws(ServerError) -> ServerSocket {
    let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    let descriptor = socket(AF_INET, kind, 0)
    guard descriptor >= 0 else { throw ServerError("no socket to be had") }
    var on: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
    let code = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard code == 0, listen(descriptor, 64) == 0 else { throw ServerError("port \(port)") }
    return ServerSocket(descriptor: descriptor)
  }

  /// `nil` where it isn't of IPv4.
  var port: UInt16? {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let code = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        getsockname(descriptor, $0, &length)
      }
    }
    guard code == 0, address.sin_family == sa_family_t(AF_INET) else { return nil }
    return UInt16(bigEndian: address.sin_port)
  }
}
