import Glibc
import Linux

/// The service manager that started the daemon, if there is one (sd_notify(3)): with `Type=notify` in its unit,
/// systemd knows when the daemon manages its workers.
enum ServiceManager {
  /// - Parameter socket: nil, or empty: no service manager waits for it.
  static func send(
    _ message: String, to socket: String? = getenv("NOTIFY_SOCKET").map { String(cString: $0) }
  ) {
    guard let socket, !socket.isEmpty,
      // A service manager that can't be reached isn't needed to run.
      let connection = try? UnixSocket.connected(to: socket, .datagram)
    else { return }
    // Nor is one that has ended meanwhile.
    try? connection.writeAll(message)
  }
}
