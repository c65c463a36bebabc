import Glibc
import JSONLines
import Synchronization
import TestSupport
import WorkerProtocol

/// A daemon on a socket of a test's own. Its threads are its own, too: tests run on the few threads
/// that the worker's tasks need, and must not block them.
final class KitDaemon: Sendable {
  enum Heard: Sendable {
    case connected(Peer)
    case message(WorkerMessage, Peer)
    /// A descriptor, which came with the line before it.
    case descriptor(Int32, Peer)
    case closed(Peer)
  }

  var path: String { daemon.path }
  private let daemon: FakeDaemon
  private let hearing: AsyncStream<Heard>.Continuation
  private let iterator: Reader

  /// - Parameter listens: False if the socket doesn't exist before `listen`.
  init(listens: Bool = true) throws {
    let (stream, hearing) = AsyncStream.makeStream(of: Heard.self)
    self.hearing = hearing
    iterator = Reader(stream)
    daemon = try FakeDaemon(listens: listens) { connection in
      let peer = Peer(connection)
      hearing.yield(.connected(peer))
      peer.readAll { hearing.yield($0) }
      hearing.yield(.closed(peer))
    }
  }

  deinit { hearing.finish() }

  func listen() throws { try daemon.listen() }

  /// Returns the next thing that the daemon receives. The test's time limit ends the wait.
  func next() async throws -> Heard {
    guard let heard = await iterator.next() else { throw TestFailure("nothing more is heard") }
    return heard
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
    private let stream: AsyncStream<Heard>
    init(_ stream: AsyncStream<Heard>) { self.stream = stream }

    func next() async -> Heard? {
      for await heard in stream { return heard }
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

  func readAll(_ hear: (KitDaemon.Heard) -> Void) {
    var framer = LineFramer()
    while let (bytes, descriptor) = receive() {
      framer.append(bytes)
      while let line = try? framer.next() {
        if let message = try? WorkerMessage.read(line) { hear(.message(message, self)) }
      }
      if let descriptor { hear(.descriptor(descriptor, self)) }
    }
  }

  private func receive() -> ([UInt8], Int32?)? {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    var control = [UInt64](repeating: 0, count: 8)
    var header = msghdr()
    let count = buffer.withUnsafeMutableBytes { bytes in
      control.withUnsafeMutableBytes { control in
        var part = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
        return withUnsafeMutablePointer(to: &part) { part in
          header.msg_iov = part
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
