import Glibc
import Synchronization

/// The address of a port at 127.0.0.1, for bind, connect and sendto.
public func withLoopback<Result>(
  _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
) -> Result {
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = port.bigEndian
  address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
  return withUnsafePointer(to: &address) { pointer in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
    }
  }
}

/// The address of a Unix socket.
public func withUnixAddress<Result>(
  _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
) -> Result {
  var address = sockaddr_un()
  address.sun_family = sa_family_t(AF_UNIX)
  withUnsafeMutableBytes(of: &address.sun_path) { target in
    precondition(path.utf8.count < target.count, "\(path) is too long for a socket")
    target.copyBytes(from: path.utf8)
  }
  return withUnsafePointer(to: &address) { pointer in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
    }
  }
}

/// The port that a socket is bound to.
public func localPort(of socket: Int32) -> UInt16 {
  var address = sockaddr_in()
  var length = socklen_t(MemoryLayout<sockaddr_in>.size)
  let result = withUnsafeMutablePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &length) }
  }
  precondition(result == 0, "getsockname: errno \(errno)")
  return UInt16(bigEndian: address.sin_port)
}

private let givenPorts = Mutex<Set<UInt16>>([])

/// A free port, below those that the kernel gives to clients, and another one at each call: a test
/// uses its port only later. The range is large, so that two processes seldom get the same one. Not
/// replayed by DORMOUSE_TEST_SEED: another run may hold the port.
public func freePort() throws -> UInt16 {
  for _ in 0..<1000 {
    let port = UInt16.random(in: 12_000..<32_000)
    guard givenPorts.withLock({ $0.insert(port).inserted }) else { continue }
    let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    defer { close(socket) }
    if withLoopback(port, { bind(socket, $0, $1) }) == 0 { return port }
  }
  throw TestFailure("no free port")
}
