/// The control socket, from the moment at which clients are accepted. It belongs to the event
/// loop's thread.
final class ControlSocket {
  private let path: String
  private let loop: EventLoop
  private let log: DaemonLog
  private var opened: (server: ControlServer, service: ControlService)?

  init(path: String, _ loop: EventLoop, _ log: DaemonLog) {
    self.path = path
    self.loop = loop
    self.log = log
  }

  /// Opens the socket and accepts clients.
  ///
  /// - Parameter makeService: makes the service that answers the requests.
  func open(_ makeService: (ControlServer) -> ControlService) throws(StartError) {
    let server = try ControlServer(path: path, loop, log)
    let service = makeService(server)
    try server.connect(service)
    opened = (server, service)
  }

  /// The pid of the process that made this connection, as the kernel reports it.
  func process(of client: ClientID) -> Int32? { opened?.server.process(of: client) }

  /// Answers the open requests of all clients before the daemon ends.
  func announceEnd(_ text: String) { opened?.server.announceEnd(text) }

  func close() {
    opened?.server.close()
    // The service has components that refer to this socket, so it is released here.
    opened = nil
  }
}
