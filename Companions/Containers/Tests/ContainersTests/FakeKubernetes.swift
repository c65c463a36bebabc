import JSONLines
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Synchronization

/// `FakeCluster` as a server on the loopback interface, with HTTP or HTTPS.
final class FakeKubernetes: Sendable {
  enum Fault: Sendable {
    /// The server sends this status instead of an answer.
    case status(Int, retryAfter: Int? = nil)
    /// The request has its effect, and the connection is closed without an answer.
    case loseAnswer
    case garbage
  }

  struct Request: Sendable {
    var method: String
    var path: String
    var headers: HTTPHeaders
    var body: JSON?
  }

  struct State: Sendable {
    var cluster = FakeCluster()
    var requests: [Request] = []
    /// The fault of all requests, until it is nil.
    var fault: Fault?
    /// Statuses for requests whose path ends with this.
    var refused: [String: Int] = [:]
  }

  let state = Mutex(State())
  private let security: NIOSSLContext?
  private let listener = Mutex<(any Channel)?>(nil)
  private let number = Mutex(0)

  init(security: NIOSSLContext? = nil) throws {
    self.security = security
    try start()
  }

  var port: Int { number.withLock { $0 } }
  var url: String { "\(security == nil ? "http" : "https")://127.0.0.1:\(port)" }
  var cluster: FakeCluster { state.withLock { $0.cluster } }

  /// Starts the server, at the same port as before.
  func start() throws {
    let channel = try ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelInitializer { [weak self] channel in
        channel.eventLoop.makeCompletedFuture {
          guard let self else { throw Failure("the server has ended") }
          if let security = self.security {
            try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: security))
          }
          try channel.pipeline.syncOperations.configureHTTPServerPipeline()
          try channel.pipeline.syncOperations.addHandler(ClusterHandler(self))
        }
      }
      .bind(host: "127.0.0.1", port: port).wait()
    listener.withLock { $0 = channel }
    number.withLock { $0 = channel.localAddress?.port ?? 0 }
  }

  func stop() throws {
    try listener.withLock { held in
      let channel = held
      held = nil
      return channel
    }?.close().wait()
  }

  /// Returns the answer; nil if the connection is closed.
  fileprivate func answer(_ request: Request) -> (Int, [UInt8], retryAfter: Int?)? {
    state.withLock { state in
      state.requests.append(request)
      if case .status(let status, let retryAfter) = state.fault {
        return (status, FakeCluster.Answer.failure(status, "fault").body.line, retryAfter)
      }
      if case .garbage = state.fault { return (200, Array("<html>".utf8), nil) }
      let path = String(request.path.prefix { $0 != "?" })
      if let refused = state.refused.first(where: { path.hasSuffix($0.key) })?.value {
        let text = "User \"dormouse\" cannot use resource \"pods\" in API group \"\""
        return (refused, FakeCluster.Answer.failure(refused, text).body.line, nil)
      }
      let answer = state.cluster.answer(request.method, request.path, request.body)
      if case .loseAnswer = state.fault { return nil }
      return (answer.status, answer.body.line, nil)
    }
  }

  deinit {
    // The last reference may be that of a connection, on a thread that must not wait.
    listener.withLock { $0 }?.close(promise: nil)
  }
}

private final class ClusterHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private let server: FakeKubernetes
  private var head: HTTPRequestHead?
  private var body: [UInt8] = []

  init(_ server: FakeKubernetes) { self.server = server }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head):
      self.head = head
      body = []
    case .body(let bytes): body += Array(bytes.readableBytesView)
    case .end:
      guard let head else { return }
      let request = FakeKubernetes.Request(
        method: head.method.rawValue, path: head.uri, headers: head.headers,
        body: body.isEmpty ? nil : JSON(body))
      guard let (status, bytes, retryAfter) = server.answer(request) else {
        context.close(promise: nil)
        return
      }
      var answer = HTTPResponseHead(
        version: .http1_1, status: HTTPResponseStatus(statusCode: status))
      answer.headers.add(name: "Content-Length", value: "\(bytes.count)")
      if let retryAfter { answer.headers.add(name: "Retry-After", value: "\(retryAfter)") }
      context.write(wrapOutboundOut(.head(answer)), promise: nil)
      context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: bytes)))), promise: nil)
      context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }
}
