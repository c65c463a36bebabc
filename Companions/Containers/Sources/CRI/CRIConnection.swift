import GRPCCore
import GRPCNIOTransportHTTP2Posix

/// A connection to the CRI of containerd or CRI-O, on its Unix socket.
public struct CRIConnection: Sendable {
  private let client: GRPCClient<HTTP2ClientTransport.Posix>
  private let timeout: Duration

  /// Connects, runs `body`, and closes the connection.
  public static func use<Value: Sendable>(
    socket: String, timeout: Duration = .seconds(10),
    _ body: @Sendable (CRIConnection) async throws(CRIError) -> Value
  ) async throws(CRIError) -> Value {
    do {
      let transport = try HTTP2ClientTransport.Posix(
        // containerd's HTTP/2 doesn't accept a path as an authority.
        target: .unixDomainSocket(path: socket, authority: "localhost"),
        transportSecurity: .plaintext)
      return try await withGRPCClient(transport: transport) { client in
        try await body(CRIConnection(client: client, timeout: timeout))
      }
    } catch { throw failure(error) }
  }

  public func version() async throws(CRIError) -> CRIMessages.Version {
    try await call("Version", [], CRIMessages.Version.self)
  }

  public func sandboxes() async throws(CRIError) -> [CRIMessages.Sandbox] {
    try await call("ListPodSandbox", [], CRIMessages.Sandboxes.self).items
  }

  /// Returns the running containers.
  public func containers() async throws(CRIError) -> [CRIMessages.Container] {
    let request = ProtobufWriter { request in
      request.message(1) { filter in
        filter.message(2) { state in state.number(1, CRIMessages.ContainerState.running.rawValue) }
      }
    }
    return try await call("ListContainers", request.bytes, CRIMessages.Containers.self).items
  }

  /// Returns the JSON that describes a container's process; nil if the container doesn't run any
  /// more.
  public func information(of container: String) async throws(CRIError) -> String? {
    let request = ProtobufWriter { request in
      request.text(1, container)
      request.number(2, 1)
    }
    do throws(CRIError) {
      let answer = try await call(
        "ContainerStatus", request.bytes, CRIMessages.ContainerStatus.self)
      return answer.state == .running ? answer.info["info"] : nil
    } catch .notFound { return nil }
  }

  /// Calls back for each event. It returns only by throwing an error.
  public func followEvents(
    changed: @Sendable @escaping () async -> Void
  ) async throws(CRIError) {
    do {
      try await client.serverStreaming(
        request: ClientRequest(message: []), descriptor: Self.method("GetContainerEvents"),
        serializer: RawSerializer(), deserializer: MessageReader<CRIMessages.Event>(),
        options: .defaults
      ) { response in
        // containerd sends its headers with the first event.
        for try await _ in response.messages { await changed() }
      }
    } catch { throw Self.failure(error) }
    throw .closed
  }

  /// Makes a call whose answer isn't read here, or is read by a test.
  public func call(_ name: String, _ request: [UInt8]) async throws(CRIError) -> [UInt8] {
    try await call(name, request, RawDeserializer())
  }

  private func call<Message: ProtobufReadable>(
    _ name: String, _ request: [UInt8], _ type: Message.Type
  ) async throws(CRIError) -> Message {
    try await call(name, request, MessageReader<Message>())
  }

  private func call<Answer: Sendable>(
    _ name: String, _ request: [UInt8], _ reader: some MessageDeserializer<Answer>
  ) async throws(CRIError) -> Answer {
    var options = CallOptions.defaults
    options.timeout = timeout
    // Otherwise a call to a socket that doesn't exist would wait until its timeout.
    options.waitForReady = false
    options.maxResponseMessageBytes = 32 << 20
    do {
      return try await client.unary(
        request: ClientRequest(message: request), descriptor: Self.method(name),
        serializer: RawSerializer(), deserializer: reader, options: options
      ) { try $0.message }
    } catch { throw Self.failure(error) }
  }

  private static func method(_ name: String) -> MethodDescriptor {
    MethodDescriptor(fullyQualifiedService: "runtime.v1.RuntimeService", method: name)
  }

  private static func failure(_ error: any Error) -> CRIError {
    switch error {
    case let error as CRIError: error
    case let error as ProtobufReader.Malformed: .malformed(error.description)
    case let error as RPCError: failure(error)
    default: .unreachable("\(error)")
    }
  }

  private static func failure(_ error: RPCError) -> CRIError {
    if let cause = error.cause as? ProtobufReader.Malformed { return .malformed(cause.description) }
    return switch error.code {
    case .unavailable: .unreachable(error.message)
    case .deadlineExceeded: .timedOut
    case .unimplemented: .unsupported
    case .notFound: .notFound
    case .cancelled: .closed
    default: .refused(error.message)
    }
  }
}

private struct RawSerializer: MessageSerializer {
  func serialize<Bytes: GRPCContiguousBytes>(_ message: [UInt8]) -> Bytes { Bytes(message) }
}

private struct RawDeserializer: MessageDeserializer {
  func deserialize<Bytes: GRPCContiguousBytes>(_ bytes: Bytes) -> [UInt8] {
    bytes.withUnsafeBytes { Array($0) }
  }
}

private struct MessageReader<Message: ProtobufReadable>: MessageDeserializer {
  func deserialize<Bytes: GRPCContiguousBytes>(_ bytes: Bytes) throws -> Message {
    try Message(bytes.withUnsafeBytes { Array($0) }[...])
  }
}
