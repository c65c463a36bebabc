import CLinux
import Glibc
import Linux
import Supervision
import TestSupport
import Testing
import WorkerProtocol

/// A worker's end of the socket, without a worker.
private final class Peer {
  let socket: Descriptor
  private var received: [UInt8] = []

  init(_ path: String) throws { socket = try UnixSocket.connected(to: path, .stream) }

  func say(_ text: String) throws { try socket.writeAll(text) }

  func pass(_ text: String, _ descriptor: Int32) throws {
    let bytes = Array(text.utf8)
    try shim("sendmsg") {
      clinux_send_with_descriptor(socket.raw, bytes, Int64(bytes.count), descriptor)
    }
  }

  /// Everything that has arrived so far; nil if the connection has been closed.
  func hear() -> String? {
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = recv(socket.raw, &buffer, buffer.count, Int32(MSG_DONTWAIT))
      if count > 0 {
        received += buffer[..<count]
      } else if count == 0 || errno != EAGAIN {
        return nil
      } else {
        return String(decoding: received, as: UTF8.self)
      }
    }
  }

  var isClosed: Bool { hear() == nil }
}

@Suite("DORMOUSE_WORKER_SOCKET") struct WorkerSocketTests {
  private let scratch: Scratch
  private let socket: WorkerSocket

  init() throws {
    scratch = try Scratch()
    socket = try WorkerSocket(path: "\(scratch.path)/worker")
  }

  /// Services the socket. Each process counts as the worker's.
  private func service() throws -> [WorkerSocket.Update] { try socket.service { _ in true } }

  private func messages(_ updates: [WorkerSocket.Update]) -> [WorkerMessage] {
    updates.compactMap { if case .received(_, let message, _) = $0 { message } else { nil } }
  }

  private func ends(_ updates: [WorkerSocket.Update]) -> [String?] {
    updates.compactMap { if case .closed(_, let reason) = $0 { .some(reason) } else { nil } }
  }

  /// Services the socket until `isEnough`.
  private func updates(
    until isEnough: ([WorkerSocket.Update]) -> Bool
  ) throws -> [WorkerSocket.Update] {
    var all: [WorkerSocket.Update] = []
    let deadline = Deadline(in: .seconds(60))
    while !isEnough(all) {
      guard try pollDescriptor(socket.descriptor.raw, for: POLLIN, until: deadline) else {
        throw TestFailure("only \(all)")
      }
      all += try service()
    }
    return all
  }

  @Test("A worker's socket receives lines, whatever pieces they arrive in, and sends lines")
  func talk() throws {
    let peer = try Peer(socket.path)
    try peer.say("{\"type\":\"ready\"}\n{\"type\":\"do")
    var all = try updates { messages($0).count == 1 }
    try peer.say("ne\",\"id\":7}\r\n\n{\"type\":\"later\"}\n")
    all += try updates { messages($0).count == 1 }
    #expect(messages(all) == [.ready, .done(id: 7)])
    let id = try #require(socket.connectionIDs.first)
    #expect(socket.send(.pressure(level: "urgent"), to: id))
    #expect(peer.hear() == #"{"type":"pressure","level":"urgent"}"# + "\n")
  }

  @Test func `A connection that isn't the worker's, and a ninth connection, are closed`() throws {
    let stranger = try Peer(socket.path)
    let refused = try socket.service { pid in
      #expect(pid == getpid())
      return false
    }
    #expect(refused.count == 1)
    #expect(try eventually { stranger.isClosed })
    let peers = try (0..<9).map { _ in try Peer(socket.path) }
    _ = try service()
    #expect(socket.connectionIDs.count == 8)
    #expect(try eventually { peers[8].isClosed })
    #expect(!peers[7].isClosed)
  }

  @Test(
    "An unreadable line on the worker's socket is answered, and the sixteenth ends the connection")
  func senseless() throws {
    let peer = try Peer(socket.path)
    try peer.say("[]\n")
    _ = try updates { _ in socket.isConnected }
    _ = try service()
    #expect(
      peer.hear() == "{\"type\":\"error\",\"message\":\"the last line can't be read: "
        + "it isn't a JSON object\"}\n")
    for _ in 0..<15 { try peer.say("{\"type\":\"done\"}\n") }
    let all = try updates { !ends($0).isEmpty }
    #expect(ends(all) == ["16 of its lines could not be read"])
    #expect(!socket.isConnected)
  }

  @Test("A line that is too long, or an unknown version, ends a connection of the worker's socket")
  func ended() throws {
    let long = try Peer(socket.path)
    _ = try service()
    let half = [UInt8](repeating: UInt8(ascii: "x"), count: 4096)
    var all: [WorkerSocket.Update] = []
    for _ in 0..<100 where socket.isConnected {
      _ = send(long.socket.raw, half, half.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
      all += try service()
    }
    #expect(ends(all) == ["a line is longer than 262144 bytes"])
    let newer = try Peer(socket.path)
    try newer.say("{\"type\":\"hello\",\"version\":2}\n")
    #expect(
      ends(try updates { !ends($0).isEmpty }) == [
        "it uses protocol version 2, which is not supported"
      ]
    )
  }

  @Test(
    "A connection that sends too much is read slowly, loses nothing and doesn't delay the others")
  func chatty() throws {
    let chatterbox = try Peer(socket.path)
    let other = try Peer(socket.path)
    _ = try service()
    try chatterbox.say((0..<450).map { "{\"type\":\"done\",\"id\":\($0)}\n" }.joined())
    var all = try service()
    #expect(messages(all).count <= 200)
    try other.say("{\"type\":\"ready\"}\n")
    all += try updates { messages($0).contains(.ready) }
    let before = all
    all += try updates { messages(before + $0).count == 451 }
    let said = messages(all).filter { $0 != .ready }
    #expect(said == (0..<450).map { .done(id: $0) })
    // The last message before the end is read, too.
    try chatterbox.say("{\"type\":\"hold\",\"on\":true}\n")
    #expect(messages(try updates { !$0.isEmpty }) == [.hold(true)])
  }

  @Test func `A connection whose peer doesn't read is closed`() throws {
    let peer = try Peer(socket.path)
    _ = try service()
    let id = try #require(socket.connectionIDs.first)
    let line = DaemonMessage.error(message: String(repeating: "e", count: 4000))
    var sent = 0
    while socket.send(line, to: id), sent < 10_000 { sent += 1 }
    #expect(sent < 10_000)
    #expect(!socket.isConnected)
    #expect(socket.drainClosed() == [id])
    // Another thread closes it.
    #expect(try eventually { peer.isClosed })
  }

  @Test func `Lines for a slow reader are kept and arrive when it reads`() throws {
    let peer = try Peer(socket.path)
    _ = try service()
    let id = try #require(socket.connectionIDs.first)
    let line = DaemonMessage.error(message: String(repeating: "e", count: 50_000))
    // This is more than the kernel accepts, and less than the socket's limit.
    var sent = 0
    while try !pollDescriptor(socket.descriptor.raw, for: POLLIN, until: Deadline(in: .zero)),
      sent < 5
    {
      #expect(socket.send(line, to: id))
      sent += 1
    }
    let heard = try eventually {
      let text = peer.hear() ?? ""
      _ = try service()
      return text.utf8.count == sent * (line.line.count + 1)
    }
    #expect(heard)
  }

  /// One end of a socket pair whose other end has been passed. It reads the end when no process has
  /// the other one open any more.
  private func passed(_ text: String, by peer: Peer, times: Int = 1) throws -> Descriptor {
    var ends: [Int32] = [0, 0]
    let type = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue
    guard socketpair(AF_UNIX, Int32(type), 0, &ends) == 0 else { throw TestFailure("socketpair") }
    let write = Descriptor(owning: ends[1])
    for _ in 0..<times { try peer.pass(text, write.raw) }
    return Descriptor(owning: ends[0])
  }

  private func isAtEnd(_ end: Descriptor) throws -> Bool {
    guard try pollDescriptor(end.raw, for: POLLIN, until: Deadline(in: .zero)) else {
      return false
    }
    return try end.read(upTo: 1).isEmpty
  }

  @Test("A descriptor is kept only with `purgeable`, and all others are closed")
  func descriptors() throws {
    let peer = try Peer(socket.path)
    _ = try service()
    let useless = try passed("{\"type\":\"status\",\"text\":\"\"}\n", by: peer, times: 3)
    _ = try updates { messages($0).count == 3 }
    #expect(try eventually { try isAtEnd(useless) })
    // Half a line may wait, with one descriptor, and no more.
    let many = try passed("{\"type\":", by: peer)
    let last = try passed(" \"purgeable\"}\n", by: peer)
    var all = try updates { messages($0) == [.purgeable] }
    #expect(try eventually { try isAtEnd(many) })
    #expect(try !isAtEnd(last))
    guard case .received(_, _, .some)? = all.last else {
      throw TestFailure("no descriptor: \(all)")
    }
    all = []
    #expect(try eventually { try isAtEnd(last) })
    // The end of the connection discards the unfinished line with its descriptor.
    let unfinished = try passed("{\"type\":", by: peer)
    _ = try service()
    #expect(try !isAtEnd(unfinished))
    shutdown(peer.socket.raw, Int32(SHUT_RDWR))
    _ = try updates { !ends($0).isEmpty }
    #expect(try eventually { try isAtEnd(unfinished) })
  }
}
