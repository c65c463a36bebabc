import Hummingbird
import NIOCore

/// The connection of a request.
struct ConnectionContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  let peer: Endpoint?
  let local: Endpoint?
  private let channel: any Channel

  init(source: ApplicationRequestContextSource) {
    coreContext = CoreRequestContextStorage(source: source)
    peer = Self.endpoint(source.channel.remoteAddress)
    local = Self.endpoint(source.channel.localAddress)
    channel = source.channel
  }

  /// Reports that the other end has the token: its connection may stay open.
  func permit() { channel.pipeline.fireUserInboundEventTriggered(ConnectionGuard.Permitted()) }

  static func endpoint(_ address: SocketAddress?) -> Endpoint? {
    guard let text = address?.ipAddress, let port = address?.port,
      let parsed = IPAddress(text)
    else { return nil }
    return Endpoint(address: parsed, port: port)
  }
}
