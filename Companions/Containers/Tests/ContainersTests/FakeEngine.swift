import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// The Engine API of a test's own runtime.
final class FakeEngine: Sendable {
  struct Shape: Sendable {
    var id: String
    var name: String
    var labels: [String: String]
    var pid: Int32
    var isPaused = false
    var healthcheck = ""
    /// The labels of the image; nil if the runtime doesn't have the image any more.
    var imageLabels: [String: String]? = [:]

    var listed: String {
      #"{"Id":"\#(id)","Names":["/\#(name)"],"Labels":\#(labelText),"State":"running","SizeRw":1}"#
    }
    var inspected: String {
      #"{"Id":"\#(id)","Image":"sha256:\#(id)","Name":"/\#(name)","#
        + #""State":{"Running":\#(pid > 0),"Paused":\#(isPaused),"Pid":\#(pid)},"#
        + #""Config":{"Labels":\#(labelText)\#(healthcheck)}}"#
    }
    var image: String? {
      imageLabels.map { #"{"Id":"sha256:\#(id)","Config":{"Labels":\#(Self.text($0))}}"# }
    }
    private var labelText: String { Self.text(labels) }
    private static func text(_ labels: [String: String]) -> String {
      "{" + labels.map { "\"\($0)\":\"\($1)\"" }.sorted().joined(separator: ",") + "}"
    }
  }

  struct State: Sendable {
    var containers: [Shape] = []
    /// A text that is sent instead of lists and details.
    var garbage: String?
    var status = HTTPResponseStatus.ok
    var streams: [any Channel] = []
    var lists = 0
    var opened = 0
  }

  let socket: String
  let state = Mutex(State())
  private let listener = Mutex<(any Channel)?>(nil)

  init(socket: String, _ containers: [Shape] = []) throws {
    self.socket = socket
    state.withLock { $0.containers = containers }
    try start()
  }

  func start() throws {
    let channel = try ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .childChannelInitializer { [unowned self] channel in
        channel.pipeline.configureHTTPServerPipeline().flatMapThrowing {
          try channel.pipeline.syncOperations.addHandler(EngineHandler(self))
        }
      }
      .bind(unixDomainSocketPath: socket, cleanupExistingSocketFile: true).wait()
    listener.withLock { $0 = channel }
  }

  /// Stops the runtime, as when its daemon ends: nothing listens, and all streams end.
  func stop() throws {
    try listener.withLock { held in
      let channel = held
      held = nil
      return channel
    }?.close().wait()
    endStreams()
  }

  func endStreams() {
    let streams = state.withLock { state in
      defer { state.streams = [] }
      return state.streams
    }
    for stream in streams { stream.close(promise: nil) }
  }

  func set(_ containers: [Shape], event: String? = "start") {
    state.withLock { $0.containers = containers }
    if let event { send("{\"Type\":\"container\",\"Action\":\"\(event)\"}\n") }
  }

  /// Sends a text to all streams.
  func send(_ text: String) {
    for stream in state.withLock({ $0.streams }) {
      stream.writeAndFlush(
        HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(string: text))), promise: nil)
    }
  }

  deinit {
    // If it can't be closed, it was closed before.
    try? stop()
  }
}

private final class EngineHandler: ChannelInboundHandler, Sendable {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private let engine: FakeEngine

  init(_ engine: FakeEngine) { self.engine = engine }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard case .head(let head) = unwrapInboundIn(data) else { return }
    let path = head.uri.prefix { $0 != "?" }
    if path == "/events" { return open(context) }
    let (status, body) = engine.state.withLock { state -> (HTTPResponseStatus, String) in
      if path == "/containers/json" { state.lists += 1 }
      if let garbage = state.garbage { return (state.status, garbage) }
      if path == "/containers/json" {
        return (.ok, "[" + state.containers.map(\.listed).joined(separator: ",") + "]")
      }
      let parts = path.split(separator: "/")
      let container = state.containers.first {
        parts.count > 1 && parts[1] == (parts[0] == "images" ? "sha256:\($0.id)" : $0.id)
      }
      guard let body = parts.first == "images" ? container?.image : container?.inspected else {
        return (.notFound, #"{"message":"no such \#(parts.first ?? "")"}"#)
      }
      return (.ok, body)
    }
    var answer = HTTPResponseHead(version: .http1_1, status: status)
    answer.headers.add(name: "Content-Length", value: "\(body.utf8.count)")
    context.write(wrapOutboundOut(.head(answer)), promise: nil)
    context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: body)))), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
  }

  private func open(_ context: ChannelHandlerContext) {
    var answer = HTTPResponseHead(version: .http1_1, status: .ok)
    answer.headers.add(name: "Transfer-Encoding", value: "chunked")
    context.writeAndFlush(wrapOutboundOut(.head(answer)), promise: nil)
    engine.state.withLock {
      $0.streams.append(context.channel)
      $0.opened += 1
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }
}
