import Glibc
import JSONLines
import TestSupport
import WorkerKit
import WorkerProtocol

/// A daemon on a socket of a test's own. Its threads are its own, too: tests run on the few threads
/// that the worker's tasks need, and must not block them.
final class KitDaemon: Sendable {
  enum Received: Sendable {
    case connected(Peer)
    case message(WorkerMessage, Peer)
    /// A descriptor, which came with the line before it.
    case descriptor(Int32, Peer)
    case closed(Peer)
  }

  var path: String { daemon.path }
  private let daemon: FakeDaemon
  private let continuation: AsyncStream<Received>.Continuation
  private let iterator: Reader

  /// - Parameter listens: False if the socket doesn't exist before `listen`.
  init(listens: Bool = true) throws {
    let (stream, continuation) = AsyncStream.makeStream(of: Received.self)
    self.continuation = continuation
    iterator = Reader(stream)
    daemon = try FakeDaemon(listens: listens) { connection in
      let peer = Peer(connection)
      continuation.yield(.connected(peer))
      peer.readAll { continuation.yield($0) }
      continuation.yield(.closed(peer))
    }
  }

  /// Returns a daemon, a worker that is connected to it, and the daemon's side of the connection.
  static func connected() async throws -> (KitDaemon, Worker, Peer) {
    let daemon = try KitDaemon()
    let worker = Worker(socketPath: daemon.path)
    worker.connect()
    return (daemon, worker, try await daemon.peer())
  }

  deinit { continuation.finish() }

  func listen() throws { try daemon.listen() }

  /// Returns the next thing that the daemon receives. The test's time limit ends the wait.
  func next() async throws -> Received {
    guard let received = await iterator.next() else {
      throw TestFailure("the daemon receives nothing more")
    }
    return received
  }

  /// Returns the next connection, after both sides have sent `hello`. Until then the worker sends
  /// only what still holds.
  func peer(state: String = "background", pressure: String = "normal") async throws -> Peer {
    while true {
      guard case .message(.hello, let peer) = try await next() else { continue }
      peer.send(.hello(version: 1, worker: "test", state: state, pressure: pressure))
      return peer
    }
  }

  /// Returns the next message that isn't a `hello`.
  func message() async throws -> WorkerMessage {
    while true {
      if case .message(let message, _) = try await next(), message != .hello(version: 1) {
        return message
      }
    }
  }

  func messages(_ count: Int) async throws -> [WorkerMessage] {
    var messages: [WorkerMessage] = []
    while messages.count < count { messages.append(try await message()) }
    return messages
  }

  /// Makes sure that one task reads at a time.
  private actor Reader {
    private let stream: AsyncStream<Received>
    init(_ stream: AsyncStream<Received>) { self.stream = stream }

    func next() async -> Received? {
      for await received in stream { return received }
      return nil
    }
  }
}

/// A connection, from the daemon's side.
final class Peer: Sendable {
  private let connection: FakeConnection
  init(_ connection: FakeConnection) { self.connection = connection }

  func send(_ message: DaemonMessage) { send(message.line + [UInt8(ascii: "\n")]) }

  func request(_ id: UInt64, _ request: DaemonMessage.Request, deadline: Double = 5) {
    send(.request(id: id, deadlineSeconds: deadline, request))
  }

  func send(_ bytes: [UInt8]) { connection.send(bytes) }

  /// Closes the connection.
  func close() { connection.hangUp() }

  func readAll(_ report: (KitDaemon.Received) -> Void) {
    var framer = LineFramer()
    while let (bytes, descriptor) = receive() {
      framer.append(bytes)
      while let line = try? framer.next() {
        if let message = try? WorkerMessage.read(line) { report(.message(message, self)) }
      }
      if let descriptor { report(.descriptor(descriptor, self)) }
    }
  }

  private func receive() -> ([UInt8], Int32?)? {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    var control = [UInt64](repeating: 0, count: 8)
    var header = msghdr()
    let count = buffer.withUnsafeMutableBytes { bytes in
      control.withUnsafeMutableBytes { control in
        var vector = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
        return withUnsafeMutablePointer(to: &vector) { vector in
          header.msg_iov = vector
          header.msg_iovlen = 1
          header.msg_control = control.baseAddress
          header.msg_controllen = control.count
          return recvmsg(connection.descriptor, &header, Int32(MSG_CMSG_CLOEXEC))
        }
      }
    }
    guard count > 0 else { return nil }
    // The control message has a length, level and type, then the descriptor (cmsg(3)).
    let hasDescriptor =
      header.msg_controllen >= 20
      && control[1] == UInt64(SOL_SOCKET) | UInt64(SCM_RIGHTS) << 32
    return (Array(buffer[..<count]), hasDescriptor ? Int32(truncatingIfNeeded: control[2]) : nil)
  }
}
