import Glibc
import JSONLines
import Linux

/// A blocking client of the control socket. Every verb of the command line uses it.
///
/// Requests may be pipelined: `send` several, and then wait for each. The daemon responds when an
/// action is complete, so responses arrive in any order. Those that arrive early are kept.
public struct ControlClient: ~Copyable {
  public let path: String
  private let socket: Descriptor
  private var framer = LineFramer(maximumLength: WireCodec.longestAnswer)
  private var outstanding: Set<UInt64> = []
  private var early: [UInt64: ControlResponse] = [:]
  /// Events that were received and not returned yet, the oldest first.
  private var followed: [EventRecord] = []
  /// The next request's id. The daemon uses 0 in responses to lines whose id it couldn't read.
  private var nextID: UInt64 = 1

  /// Connects to the daemon at `path`.
  ///
  /// - Parameter isNamed: whether the operator has named the socket for this connection, and so has
  ///   chosen whose daemon it is.
  public init(connectingTo path: String, isNamed: Bool = false) throws(ControlError) {
    socket = try Self.connect(to: path, isNamed: isNamed)
    self.path = path
  }

  private static func connect(
    to path: String, isNamed: Bool
  ) throws(ControlError) -> Descriptor {
    guard path.utf8.count <= UnixSocket.maxPath else {
      throw .pathTooLong(path: path, maximum: UnixSocket.maxPath)
    }
    let socket: Descriptor
    do throws(SystemCallError) {
      socket = try Descriptor.socket(family: AF_UNIX, type: SOCK_STREAM)
    } catch { throw .system(operation: "making a socket", path: path, code: error.code) }
    do throws(SystemCallError) {
      try UnixSocket.withAddress(path, isFile: true) { (address, length) throws(SystemCallError) in
        _ = try systemCall("connect") { Glibc.connect(socket.raw, address, length) }
      }
    } catch {
      switch error.code {
      case ENOENT, ECONNREFUSED, ENOTDIR: throw .noDaemon(path: path)
      case EINVAL where path.isEmpty: throw .noDaemon(path: path)
      case EACCES, EPERM: throw .refusedByPermissions(path: path)
      default: throw .system(operation: "connecting", path: path, code: error.code)
      }
    }
    try checkListener(socket, path: path, isNamed: isNamed)
    return socket
  }

  /// Sends a request under a new id, which it returns.
  ///
  /// - Parameter fill: sets the other fields of the request.
  public mutating func send(
    _ verb: ControlRequest.Verb, worker: String? = nil,
    _ fill: (inout ControlRequest) -> Void = { _ in }
  ) throws(ControlError) -> UInt64 {
    var request = ControlRequest(id: nextID, verb: verb, worker: worker)
    nextID += 1
    fill(&request)
    try send(request)
    return request.id
  }

  /// Sends a request under the caller's id, which no other open request may have.
  public mutating func send(_ request: ControlRequest) throws(ControlError) {
    let line: [UInt8]
    do { line = try WireCodec.line(for: request) } catch { throw .unsendable(error) }
    outstanding.insert(request.id)
    var unsent = line[...]
    while !unsent.isEmpty {
      do throws(SystemCallError) {
        let count = try shim("send") { unsent.withUnsafeBytes { socket.send($0, waits: true) } }
        unsent = unsent.dropFirst(count)
      } catch {
        // The daemon may have sent the reason before it closed the connection. `response` reads it.
        if error.code == EPIPE || error.code == ECONNRESET { return }
        throw .system(operation: "sending", path: path, code: error.code)
      }
    }
  }

  /// Waits for the response to a request that was sent. Without a timeout it waits without limit.
  /// After `timedOut` it may be called again.
  public mutating func response(
    to id: UInt64, timeout: Duration? = nil
  ) throws(ControlError) -> ControlResponse {
    let deadline = timeout.map { ContinuousClock.now + $0 }
    while true {
      if let response = early.removeValue(forKey: id) { return response }
      try advance(until: deadline, timeout)
    }
  }

  /// Sends a request and waits for its response.
  public mutating func perform(
    _ verb: ControlRequest.Verb, worker: String? = nil, timeout: Duration? = nil,
    _ fill: (inout ControlRequest) -> Void = { _ in }
  ) throws(ControlError) -> ControlResponse {
    let id = try send(verb, worker: worker, fill)
    return try response(to: id, timeout: timeout)
  }

  /// Waits for the next event, after `events` with `follow`.
  public mutating func nextEvent() throws(ControlError) -> EventRecord {
    while followed.isEmpty { try advance() }
    return followed.removeFirst()
  }

  /// The next event, or nil if none arrives within the limit. An event that has been received
  /// already is returned at once, so call this until it returns nil before you poll `descriptor`.
  public mutating func nextEvent(within limit: Duration) throws(ControlError) -> EventRecord? {
    let deadline = ContinuousClock.now + limit
    do throws(ControlError) {
      while followed.isEmpty { try advance(until: deadline, limit) }
    } catch {
      guard case .timedOut = error else { throw error }
      return nil
    }
    return followed.removeFirst()
  }

  /// Readable when the daemon has sent something. Only use it to poll.
  public var descriptor: Int32 { socket.raw }

  /// Accepts the next line if it has been received, and otherwise receives more. Without a timeout
  /// it waits without limit.
  private mutating func advance(
    until deadline: ContinuousClock.Instant? = nil, _ timeout: Duration? = nil
  ) throws(ControlError) {
    if let line = try nextLine() { return try accept(line) }
    if let deadline, let timeout { try waitReadable(until: deadline, timeout) }
    try receive()
  }

  private mutating func accept(_ line: [UInt8]) throws(ControlError) {
    let response: ControlResponse
    do {
      response = try WireCodec.decode(ControlResponse.self, from: line)
    } catch {
      throw .malformed(path: path, what: error.description)
    }
    if response.result == .event {
      if let event = response.event { followed.append(event) }
    } else if outstanding.remove(response.id) != nil {
      early[response.id] = response
    } else if response.id == 0, response.result == .badRequest {
      throw .rejected(text: response.text)
    } else {
      throw .unexpectedResponse(id: response.id)
    }
  }

  private mutating func nextLine() throws(ControlError) -> [UInt8]? {
    do { return try framer.next() } catch {
      throw .malformed(path: path, what: error.description)
    }
  }

  private mutating func receive() throws(ControlError) {
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    let count: Int
    do throws(SystemCallError) {
      count = try systemCall("recv") {
        buffer.withUnsafeMutableBytes { recv(socket.raw, $0.baseAddress, $0.count, 0) }
      }
    } catch {
      if error.code == ECONNRESET { throw .closedEarly(path: path) }
      throw .system(operation: "receiving", path: path, code: error.code)
    }
    if count == 0 { throw .closedEarly(path: path) }
    framer.append(buffer[..<count])
  }

  private func waitReadable(
    until deadline: ContinuousClock.Instant, _ timeout: Duration
  ) throws(ControlError) {
    var entry = pollfd(fd: socket.raw, events: Int16(POLLIN), revents: 0)
    while true {
      let left = deadline - ContinuousClock.now
      // The time is rounded up: a poll that ends before the deadline would only have to be
      // repeated. When no time is left, the socket is polled once.
      let milliseconds = left > .zero ? min(left / .milliseconds(1) + 1, Double(Int32.max)) : 0
      // An interrupted poll is repeated for the remaining time.
      let ready = kernelResult { poll(&entry, 1, Int32(milliseconds)) }
      if ready > 0 { return }
      if left <= .zero { throw .timedOut(after: timeout) }
      if ready < 0, ready != -EINTR {
        throw .system(operation: "waiting", path: path, code: -ready)
      }
    }
  }

  /// Checks which user runs the daemon. In a directory that any user can create, such as the
  /// fallback in /tmp, any user can listen. The kernel knows which process called `listen`
  /// (SO_PEERCRED, unix(7)).
  private static func checkListener(
    _ socket: Descriptor, path: String, isNamed: Bool
  ) throws(ControlError) {
    let user: uid_t
    do throws(SystemCallError) { user = try PeerCredentials(of: socket.raw).user } catch {
      throw .system(operation: "looking up the listening process", path: path, code: error.code)
    }
    guard trusts(listener: user, as: geteuid(), isNamed: isNamed) else {
      throw .foreignDaemon(path: path, uid: user)
    }
  }

  /// Whether a client of `user` may use a daemon of `listener`. Root only uses root's daemon,
  /// unless the operator has named the socket of another user: an environment variable may come
  /// from that user, and a request can contain root's whole environment.
  static func trusts(listener: UInt32, as user: UInt32, isNamed: Bool) -> Bool {
    listener == user || listener == 0 || user == 0 && isNamed
  }
}
