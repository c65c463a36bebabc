import AsyncHTTPClient
import Dispatch
import Glibc
import NIOCore

enum HTTP {
  /// Runs `body` with a client for Unix sockets, and closes the client.
  static func use<Value: Sendable>(
    _ body: @Sendable (HTTPClient) async throws -> Value
  ) async throws -> Value {
    var configuration = HTTPClient.Configuration()
    configuration.timeout.connect = .seconds(5)
    configuration.httpVersion = .http1Only
    configuration.redirectConfiguration = .disallow
    return try await use(
      HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration), body)
  }

  static func use<Value: Sendable>(
    _ http: HTTPClient, _ body: @Sendable (HTTPClient) async throws -> Value
  ) async throws -> Value {
    do {
      let value = try await body(http)
      try await http.shutdown()
      return value
    } catch {
      // The first error is the one to report.
      try? await http.shutdown()
      throw error
    }
  }
}

enum Streams {
  static func complain(_ text: String) {
    write(Array("dormouse-containers: \(text)\n".utf8), STDERR_FILENO)
  }

  static func write(_ bytes: [UInt8], _ file: Int32) {
    var remainder = bytes[...]
    while !remainder.isEmpty {
      let count = remainder.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
      // If there is no reader, the remainder isn't written.
      if count <= 0 { return }
      remainder = remainder.dropFirst(count)
    }
  }
}

enum Signals {
  /// Runs `body` until SIGINT or SIGTERM, which cancel it.
  static func untilEnd(_ body: @escaping @Sendable () async -> Void) async {
    let task = Task { await body() }
    let sources = [SIGINT, SIGTERM].map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number)
      source.setEventHandler { task.cancel() }
      source.activate()
      return source
    }
    await task.value
    withExtendedLifetime(sources) {}
  }
}
