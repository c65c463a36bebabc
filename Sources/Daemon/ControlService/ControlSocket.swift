/// The control socket, from the moment at which clients are accepted. Belongs to the loop's thread.
final class ControlSocket {
  private let path: String
  private let services: Services
  private var opened: (server: ControlServer, service: ControlService)?

  init(path: String, _ services: Services) {
    self.path = path
    self.services = services
  }

  /// Accepts clients.
  ///
  /// - Parameter makeService: what answers the requests.
  func open(_ makeService: (ControlServer) -> ControlService) throws(StartError) {
    let server = try ControlServer(path: path, services.loop, services.log)
    let service = makeService(server)
    try server.connect(service)
    opened = (server, service)
  }

  /// The process that made this connection, as the kernel reports it.
  func process(of client: ClientID) -> Int32? { opened?.server.process(of: client) }

  /// To all clients.
  func announceEnd(_ text: String) { opened?.server.announceEnd(text) }

  func close() { opened?.server.close() }
}
