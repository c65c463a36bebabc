import Glibc
import Synchronization

/// As much of HTTP/1.1 as a person with a browser or curl needs: one request at a time on each
/// connection, in the order in which they come. `GET /show/3` and `POST /edit/3` with a text are the
/// commands `show 3` and `edit 3 TEXT`.
///
/// One thread waits for all connections. It hands a request over and goes on when that is answered:
/// commands are performed one after the other anyway.
final class HTTPServer: Sendable {
  private let socket: ServerSocket
  private let requests: AsyncStream<Request>.Continuation

  /// Bytes of a request, all in all. Nobody needs more here.
  private static let longest = 64 << 10
  private static let mostConnections = 64

  init(_ socket: ServerSocket, requests: AsyncStream<Request>.Continuation) {
    self.socket = socket
    self.requests = requests
  }

  func start() { startThread { [self] in serve() } }

  private func serve() {
    var connections: [Int32: [UInt8]] = [:]
    while true {
      var polled = connections.keys.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      if connections.count < Self.mostConnections {
        polled.append(pollfd(fd: socket.descriptor, events: Int16(POLLIN), revents: 0))
      }
      guard poll(&polled, nfds_t(polled.count), -1) > 0 else { continue }
      for ready in polled where ready.revents != 0 {
        if ready.fd == socket.descriptor {
          let connection = accept(ready.fd, nil, nil)
          if connection >= 0 { connections[connection] = [] }
        } else if var bytes = connections[ready.fd] {
          if serve(ready.fd, &bytes) {
            connections[ready.fd] = bytes
          } else {
            connections[ready.fd] = nil
            close(ready.fd)
          }
        }
      }
    }
  }

  /// Whether the connection stays.
  private func serve(_ connection: Int32, _ bytes: inout [UInt8]) -> Bool {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = read(connection, &buffer, buffer.count)
    if count < 0, errno == EINTR { return true }
    guard count > 0 else { return false }
    bytes += buffer[..<count]
    while let request = HTTPRequest(&bytes) {
      let text = perform(request.command)
      let status = text.hasPrefix("error: ") ? "400 Bad Request" : "200 OK"
      let head = """
        HTTP/1.1 \(status)\r
        Content-Type: text/plain; charset=utf-8\r
        Content-Length: \(text.utf8.count)\r
        \r

        """
      guard Files.writeAll(Array((head + text).utf8), to: connection) else { return false }
    }
    return bytes.count <= Self.longest
  }

  private func perform(_ line: String) -> String {
    let slot = AnswerSlot()
    requests.yield(Request(line: line) { slot.fill($0) })
    return slot.wait()
  }
}

/// Where a thread waits for an answer that a task gives.
private final class AnswerSlot: Sendable {
  private let text = Mutex<String?>(nil)
  private let pipe: (read: Int32, write: Int32)

  init() {
    var ends: [Int32] = [-1, -1]
    if Glibc.pipe(&ends) != 0 { quit(saying: "breadcrumbs: no pipe to be had", code: 71) }
    pipe = (ends[0], ends[1])
  }

  deinit {
    close(pipe.read)
    close(pipe.write)
  }

  func fill(_ answer: String) {
    text.withLock { $0 = answer }
    _ = Files.writeAll([1], to: pipe.write)
  }

  func wait() -> String {
    var byte: UInt8 = 0
    while read(pipe.read, &byte, 1) < 0, errno == EINTR {}
    return text.withLock { $0 } ?? ""
  }
}
