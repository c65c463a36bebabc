import NIOCore
import Synchronization

/// Closes connections of owners that have too many, and those that don't show the token in time.
final class ConnectionGuard: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = NIOAny

  /// The event that is sent through the pipeline when a request was permitted.
  struct Permitted: Sendable {}

  /// The state that all connections of a server share.
  final class Shared: Sendable {
    let gate: RequestGate
    /// The threads for reading /proc.
    let files: BlockingPool
    let quota = Mutex(ConnectionQuota())

    init(gate: RequestGate, files: BlockingPool) {
      self.gate = gate
      self.files = files
    }
  }

  static let timeout = TimeAmount.seconds(10)

  private let shared: Shared
  private var owner: ConnectionQuota.Owner?
  private var end: Scheduled<Void>?
  private var isOpen = false

  init(_ shared: Shared) { self.shared = shared }

  func channelActive(context: ChannelHandlerContext) {
    isOpen = true
    let channel = context.channel
    end = context.eventLoop.scheduleTask(in: Self.timeout) { channel.close(promise: nil) }
    let peer = ConnectionContext.endpoint(channel.remoteAddress)
    let local = ConnectionContext.endpoint(channel.localAddress)
    let promise = context.eventLoop.makePromise(of: ConnectionQuota.Owner.self)
    promise.completeWithTask { [shared] in
      try await shared.files.run { shared.gate.owner(peer: peer, local: local) }
    }
    promise.futureResult.assumeIsolated().whenComplete { result in
      // A user that can't be found counts as a stranger.
      self.admit((try? result.get()) ?? .stranger, channel)
    }
    context.fireChannelActive()
  }

  private func admit(_ owner: ConnectionQuota.Owner, _ channel: any Channel) {
    guard isOpen else { return }
    guard shared.quota.withLock({ $0.add(owner) }) else { return channel.close(promise: nil) }
    self.owner = owner
  }

  func channelInactive(context: ChannelHandlerContext) {
    isOpen = false
    end?.cancel()
    if let owner { shared.quota.withLock { $0.free(owner) } }
    owner = nil
    context.fireChannelInactive()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard event is Permitted else { return context.fireUserInboundEventTriggered(event) }
    end?.cancel()
  }
}
