import Glibc
import Linux

/// The service manager that started the daemon, if there is one (sd_notify(3)). With `Type=notify`
/// in the daemon's unit, systemd knows when the daemon manages its workers.
enum ServiceManager {
  /// - Parameter socket: the path of the manager's socket; nil or empty: no service manager waits
  ///   for a message.
  static func send(
    _ message: String, to socket: String? = getenv("NOTIFY_SOCKET").map { String(cString: $0) }
  ) {
    guard let socket, !socket.isEmpty,
      // The daemon runs without a service manager that can't be reached.
      let connection = try? UnixSocket.connected(to: socket, .datagram)
    else { return }
    // Nor is a manager needed that has ended meanwhile.
    try? connection.writeAll(message)
  }
}
