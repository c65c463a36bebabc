import Glibc
import Linux

/// Checks whether a process accepts connections on a port of this machine, over IPv4 or IPv6. It
/// never blocks.
public final class TCPProbe {
  private let port: UInt16
  /// Connections that the kernel hasn't completed, because the listener's queue is full. The key is
  /// the address family.
  private var pending: [Int32: Descriptor] = [:]

  public init(port: UInt16) { self.port = port }

  /// Begins a check, or finishes the last one. If it returns false, call it again later.
  public func attempt() -> Bool {
    attempt(AF_INET) || attempt(AF_INET6)
  }

  private func attempt(_ family: Int32) -> Bool {
    if let connection = pending[family] { return finish(connection, family) }
    let connection: Descriptor
    do throws(SystemCallError) {
      connection = try .socket(family: family, type: SOCK_STREAM, isBlocking: false)
    } catch { return false }
    do throws(SystemCallError) {
      _ = try systemCall("connect") {
        family == AF_INET ? connectIPv4(connection.raw) : connectIPv6(connection.raw)
      }
      return reachesAnotherSocket(connection)
    } catch {
      if error.code == EINPROGRESS { pending[family] = connection }
      return false
    }
  }

  private func finish(_ connection: Descriptor, _ family: Int32) -> Bool {
    if !connection.isWritable { return false }
    pending[family] = nil
    return connection.connectionError == 0 && reachesAnotherSocket(connection)
  }

  /// True if the connection's other end isn't the connection itself. TCP lets a socket connect to
  /// itself if its local port happens to be the port that it connects to. Repeated attempts hit
  /// this.
  private func reachesAnotherSocket(_ connection: Descriptor) -> Bool {
    // The port is at the same offset in the addresses of both families.
    var address = sockaddr_in6()
    var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        getsockname(connection.raw, $0, &length)
      }
    }
    return result == 0 && UInt16(bigEndian: address.sin6_port) != port
  }

  private func connectIPv4(_ raw: Int32) -> Int32 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(raw, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }

  private func connectIPv6(_ raw: Int32) -> Int32 {
    var address = sockaddr_in6()
    address.sin6_family = sa_family_t(AF_INET6)
    address.sin6_port = port.bigEndian
    withUnsafeMutableBytes(of: &address.sin6_addr) { $0[15] = 1 }
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(raw, $0, socklen_t(MemoryLayout<sockaddr_in6>.size))
      }
    }
  }
}
