import Glibc
import Linux
import TestSupport

extension Descriptor {
  /// A TCP connection to a server on this machine.
  static func connected(to port: UInt16) throws -> Descriptor {
    let socket = Descriptor(owning: Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
    guard withLoopback(port, { connect(socket.raw, $0, $1) }) == 0 else {
      throw TestFailure("no process listens at \(port): \(String(cString: strerror(errno)))")
    }
    return socket
  }
}

/// One TCP connection to a worker's HTTP server. It is never opened again, so each answer comes
/// from the process that accepted it.
final class HTTPConnection {
  private let socket: Descriptor
  private var received: [UInt8] = []

  init(port: UInt16) throws { socket = try .connected(to: port) }

  func send(_ path: String) throws {
    try socket.writeAll("GET \(path) HTTP/1.1\r\nHost: test\r\n\r\n")
  }

  /// The first line of the next response's body.
  func receive(within limit: Duration = .seconds(60)) throws -> String {
    let deadline = Deadline(in: limit)
    while true {
      if let body = nextBody() { return body.split(separator: "\n").first.map(String.init) ?? "" }
      guard try pollDescriptor(socket.raw, for: POLLIN, until: deadline) else {
        throw TestFailure("no answer within \(limit)")
      }
      let chunk = try socket.read(upTo: 65536)
      if chunk.isEmpty { throw TestFailure("the server hung up") }
      received += chunk
    }
  }

  func get(_ path: String) throws -> String {
    try send(path)
    return try receive()
  }

  private func nextBody() -> String? {
    let text = String(decoding: received, as: UTF8.self)
    // A CR LF is one Character.
    let lines = text.split(separator: "\r\n", omittingEmptySubsequences: false)
    guard let blank = lines.firstIndex(of: "") else { return nil }
    let header = lines[..<blank]
    let prefix = "Content-Length: "
    let length = header.first { $0.hasPrefix(prefix) }.flatMap { Int($0.dropFirst(prefix.count)) }
    let start = header.reduce(2) { $0 + $1.utf8.count + 2 }
    guard let length, received.count >= start + length else { return nil }
    let body = received[start..<(start + length)]
    received.removeFirst(start + length)
    return String(decoding: body, as: UTF8.self)
  }
}
