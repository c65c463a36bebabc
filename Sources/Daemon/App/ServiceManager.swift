import Glibc
import Linux

/// The service manager that started the daemon, if there is one (sd_notify(3)): with `Type=notify` in its unit,
/// systemd knows when the daemon manages its workers.
enum ServiceManager {
  static func send(_ message: String) {
    guard let path = getenv("NOTIFY_SOCKET").map({ String(cString: $0) }), !path.isEmpty,
      // A service manager that can't be reached isn't needed to run.
      let socket = try? UnixSocket.connected(to: path, .datagram)
    else { return }
    // The same.
    try? socket.writeAll(message)
  }
}
