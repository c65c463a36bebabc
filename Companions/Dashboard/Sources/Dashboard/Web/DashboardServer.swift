import Control
import Hummingbird
import Logging
import NIOCore

/// The settings with which the dashboard is started.
public struct DashboardSettings: Sendable {
  public var listen: ListenAddress
  /// True if requests for addresses that aren't loopback are answered.
  public var allowsRemote: Bool
  public var token: AccessToken
  /// The daemon's socket. `isNamed` is true if the user has named it.
  public var socket: String
  public var isNamed: Bool

  public init(
    listen: ListenAddress, allowsRemote: Bool, token: AccessToken, socket: String, isNamed: Bool
  ) {
    self.listen = listen
    self.allowsRemote = allowsRemote
    self.token = token
    self.socket = socket
    self.isNamed = isNamed
  }
}

/// Serves until a signal ends the process; there is nothing to save then. `isListening` gets the
/// address with the token once.
public func serve(
  _ settings: DashboardSettings, isListening: @escaping @Sendable (String) -> Void
) async throws {
  let gate = RequestGate(token: settings.token, allowsRemote: settings.allowsRemote)
  let hub = Hub(actionToken: gate.actionToken)
  let connections = ConnectionGuard.Shared(gate: gate, files: BlockingPool(threads: 2))
  let dashboard = Dashboard(
    gate: gate, hub: hub,
    actions: ActionRunner(path: settings.socket, isNamed: settings.isNamed))
  var logger = Logger(label: "dormouse-dashboard")
  logger.logLevel = .error
  let application = Application(
    responder: dashboard,
    server: .http1(
      configuration: .init(
        additionalChannelHandlers: [ConnectionGuard(connections)], idleTimeout: .seconds(60),
        httpDecoderConfiguration: .init(
          maxHeaderFieldSize: 16 << 10, maxHeaderListSize: 32 << 10, maxHeaderFieldCount: 64))),
    configuration: ApplicationConfiguration(
      address: .hostname(settings.listen.host, port: settings.listen.port), serverName: nil,
      backlog: 64,
      availableConnectionsDelegate: .maximum(ConnectionQuota.all, logger: logger)),
    onServerRunning: { channel in
      let port = channel.localAddress?.port ?? settings.listen.port
      isListening("\(settings.listen.url(port: port))/?token=\(settings.token.text)")
    },
    logger: logger)
  let follower = Follower(hub: hub, path: settings.socket, isNamed: settings.isNamed)
  try await withThrowingTaskGroup(of: Void.self) { group in
    group.addTask { await follower.run() }
    group.addTask { try await application.runService(gracefulShutdownSignals: []) }
    // The only task that ends is the server, with its error.
    try await group.next()
    group.cancelAll()
  }
}
