import Glibc

/// The reason why a socket couldn't be opened.
struct ListenError: Error, CustomStringConvertible {
  let description: String
}

/// A listening socket for HTTP.
struct Listener: Sendable {
  let descriptor: Int32

  /// Returns the first socket that was opened for this process, as systemd and Dormouse do it;
  /// `nil` if none was.
  static func given() -> Listener? {
    func number(_ name: String) -> Int32? {
      getenv(name).flatMap { Int32(String(cString: $0)) }
    }
    guard number("LISTEN_PID") == getpid(), let count = number("LISTEN_FDS"), count > 0 else {
      return nil
    }
    return Listener(descriptor: 3)
  }

  private init(descriptor: Int32) { self.descriptor = descriptor }

  /// Listens on the loopback interface, so that no other machine can connect.
  init(port: UInt16) throws(ListenError) {
    let socket = Glibc.socket(
      AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var on: Int32 = 1
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let code = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard code == 0, listen(socket, 16) == 0 else {
      let reason = String(cString: strerror(errno))
      close(socket)
      throw ListenError(description: "port \(port): \(reason)")
    }
    descriptor = socket
  }

  /// Accepts a client; `nil` if it has closed its connection.
  func accept() -> Int32? {
    let client = Glibc.accept(descriptor, nil, nil)
    guard client >= 0 else { return nil }
    // A client that doesn't read its answer delays other clients for at most 5 s.
    var limit = timeval(tv_sec: 5, tv_usec: 0)
    setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    return client
  }
}
