import Control
import Glibc
import JSONLines
import Linux
import TestSupport

/// Requests to the real `ControlService` about a wrapped worker. Its wrapper answers when a test
/// says so.
final class RelayedRequests {
  let control: ControlWorld
  /// The ids of all requests so far.
  private(set) var ids: [UInt64] = []
  /// Whether each request is answered at once.
  var answersAtOnce = false

  init() throws {
    control = try ControlWorld()
    control.wrap("web")
    control.world.wrapped.whenAsked = { [unowned self] request in
      ids.append(request.id)
      if answersAtOnce { answer(request.id) }
    }
  }

  func answer(_ id: UInt64, _ text: String = "well") {
    control.world.wrapped.answer(to: id, text)
  }
}

/// The client's end of a control socket. It never waits, because the loop runs on the same thread.
final class ControlTestClient {
  let socket: Descriptor
  private var framer = LineFramer(maximumLength: 4 << 20)
  private(set) var answers: [ControlResponse] = []
  private(set) var hasEnded = false

  init(_ path: String) throws { socket = try UnixSocket.connected(to: path, .stream) }

  /// Sends as many bytes as the socket accepts, and returns the others.
  func offer(_ bytes: ArraySlice<UInt8>) throws -> ArraySlice<UInt8> {
    let count = bytes.withUnsafeBytes {
      Glibc.send(socket.raw, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
    }
    if count < 0 {
      guard errno == EAGAIN else { throw TestFailure("send: errno \(errno)") }
      return bytes
    }
    return bytes.dropFirst(count)
  }

  func send(_ text: String) throws {
    guard try offer(Array(text.utf8)[...]).isEmpty else { throw TestFailure("the socket is full") }
  }

  func ask(_ ids: ClosedRange<UInt64>, _ verb: ControlRequest.Verb = .wake) throws {
    let lines = try ids.map { id in
      String(
        decoding: try WireCodec.line(for: ControlRequest(id: id, verb: verb, worker: "web")),
        as: UTF8.self)
    }
    try send(lines.joined())
  }

  func ask(_ id: UInt64, _ verb: ControlRequest.Verb = .wake) throws { try ask(id...id, verb) }

  /// Reads what has arrived.
  func read() throws {
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while !hasEnded {
      let count = recv(socket.raw, &buffer, buffer.count, Int32(MSG_DONTWAIT))
      if count < 0, errno == EAGAIN || errno == EINTR { break }
      // If a socket is closed while it has unread bytes, its other end gets ECONNRESET.
      hasEnded = count <= 0
      framer.append(buffer.prefix(max(0, count)))
    }
    while let line = try framer.next() {
      answers.append(try WireCodec.decode(ControlResponse.self, from: line))
    }
  }
}
