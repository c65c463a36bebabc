import Glibc
import Linux

/// Checks whether a process accepts connections on a port of this machine, over IPv4 or IPv6. It
/// never blocks.
public final class TCPProbe {
  private let port: UInt16
  /// Connections that the kernel hasn't completed, because the listener's queue is full. The key is
  /// the host.
  private var pending: [String: Descriptor] = [:]

  public init(port: UInt16) { self.port = port }

  /// Begins a check, or finishes the last one. If it returns false, call it again later.
  public func attempt() -> Bool { attempt("127.0.0.1") || attempt("::1") }

  private func attempt(_ host: String) -> Bool {
    if let connection = pending[host] { return finish(connection, host) }
    guard let address = InternetAddress(host, port) else { return false }
    let connection: Descriptor
    do throws(SystemCallError) {
      connection = try .socket(family: address.family, type: SOCK_STREAM, isBlocking: false)
    } catch { return false }
    do throws(SystemCallError) {
      try address.connect(connection)
      return reachesAnotherSocket(connection)
    } catch {
      if error.code == EINPROGRESS { pending[host] = connection }
      return false
    }
  }

  private func finish(_ connection: Descriptor, _ host: String) -> Bool {
    if !connection.isWritable { return false }
    pending[host] = nil
    return connection.connectionError == 0 && reachesAnotherSocket(connection)
  }

  /// True if the connection's other end isn't the connection itself. TCP lets a socket connect to
  /// itself if its local port happens to be the port that it connects to. Repeated attempts hit
  /// this.
  private func reachesAnotherSocket(_ connection: Descriptor) -> Bool {
    InternetAddress.localPort(of: connection).map { $0 != port } ?? false
  }
}
