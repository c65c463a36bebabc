import Control
import Glibc
import JSONLines
import Lifecycle
import Policy
import TestSupport
import Testing

@testable import Daemon

@Suite("The control socket") struct ControlServerTests {
  private let scratch: Scratch
  private let path: String
  private let loop: EventLoop
  private let requests: RelayedRequests
  private var world: AdapterWorld { requests.control.world }
  /// The first connection to the server.
  private let first = ClientID(number: 1)

  init() throws {
    scratch = try Scratch()
    path = scratch.path + "/control.sock"
    requests = try RelayedRequests()
    loop = requests.control.world.services.loop
  }

  @discardableResult
  private func server(
    quota: ClientQuota = ClientQuota(), checkInterval: Duration = .seconds(5)
  ) throws -> ControlServer {
    let server = ControlServer(
      path: path, loop, DaemonLog(), quota: quota, checkInterval: checkInterval)
    try server.open(requests.control.service)
    requests.control.server = server
    return server
  }

  private func turn(_ client: ControlTestClient, until isDone: () throws -> Bool) throws {
    try loop.turn {
      try client.read()
      return try isDone()
    }
  }

  @Test func `Each request is answered once, with its number, when it has ended`() throws {
    let server = try server()
    let client = try ControlTestClient(path)
    try client.ask(1...3)
    try loop.turn { requests.ids == [1, 2, 3] }
    for id in [3, 1, 2] as [UInt64] { requests.answer(id, "number \(id)") }
    try turn(client) { client.answers.count == 3 }
    #expect(client.answers.map(\.id) == [3, 1, 2])
    #expect(client.answers.map(\.text) == ["number 3", "number 1", "number 2"])
    try client.ask(4)
    try loop.turn { requests.ids.last == 4 }
    requests.answer(4)
    try turn(client) { client.answers.count == 4 }
    #expect(server.process(of: first) == getpid())
  }

  @Test func `A line that isn't a request is refused, and the next line is read`() throws {
    try server()
    requests.answersAtOnce = true
    let client = try ControlTestClient(path)
    try client.send("good morning\n\n{\"id\":9,\"verb\":\"fly\"}\n{\"id\":\"x\"}\n\u{0}\u{1}\n")
    try client.ask(10)
    try turn(client) { client.answers.last?.id == 10 }
    #expect(client.answers.map(\.id) == [0, 9, 0, 0, 10])
    #expect(client.answers.dropLast().allSatisfy { $0.result == .badRequest })
    #expect(requests.ids == [10])
  }

  @Test func `A connection whose line is too long gets an error and is closed`() throws {
    let server = try server()
    let client = try ControlTestClient(path)
    var remainder = [UInt8](
      repeating: UInt8(ascii: "a"), count: LineFramer.defaultMaximumLength + 4)[
        ...]
    try turn(client) {
      if !remainder.isEmpty, !client.hasEnded, client.answers.isEmpty {
        remainder = try client.offer(remainder)
      }
      return client.hasEnded
    }
    #expect(client.answers.map(\.result) == [.badRequest])
    #expect(client.answers.first?.id == 0)
    #expect(requests.ids.isEmpty && server.process(of: first) == nil)
  }

  @Test func `A client that never reads is disconnected, and others are answered`() throws {
    let server = try server()
    let (deaf, other) = (try ControlTestClient(path), try ControlTestClient(path))
    try deaf.ask(1...12)
    try loop.turn { requests.ids.count == 12 }
    // The twelve answers have almost 2 MiB each, which is more than `maxPending`.
    let text = String(repeating: "x", count: ControlServer.maxPending / 8 - 1024)
    for id in 1...8 as ClosedRange<UInt64> { requests.answer(id, text) }
    #expect(server.process(of: first) != nil, "so much may wait")
    #expect((server.unreadBytes(of: first) ?? 0) > ControlServer.maxUnread)
    // From now on no more of its requests are read.
    try deaf.ask(13)
    try other.ask(20)
    try loop.turn { requests.ids.contains(20) }
    requests.answer(20)
    try turn(other) { other.answers.count == 1 }
    #expect(!requests.ids.contains(13))
    for id in 9...12 as ClosedRange<UInt64> { requests.answer(id, text) }
    #expect(server.unreadBytes(of: first) == nil)
    try other.ask(21)
    try loop.turn { requests.ids.last == 21 }
    requests.answer(21)
    try turn(other) { other.answers.map(\.id) == [20, 21] }
    try turn(deaf) { deaf.hasEnded }
  }

  @Test func `A client that has read its answers gets the number of lost events`() throws {
    let server = try server()
    let client = try ControlTestClient(path)
    try world.add("db")
    let follow = ControlRequest(id: 9, verb: .events, follow: true)
    try client.send(String(decoding: try WireCodec.line(for: follow), as: UTF8.self))
    try turn(client) { client.answers.map(\.id) == [9] }
    try client.ask(1)
    try loop.turn { requests.ids == [1] }
    requests.answer(1, String(repeating: "x", count: LineFramer.defaultMaximumLength - 1024))
    world.driver.request(.foreground, WorkerID("db")) { _ in }
    #expect((server.unreadBytes(of: first) ?? 0) > EventFollowing.maxUnread)
    try client.ask(2)
    try turn(client) { requests.ids == [1, 2] }
    try turn(client) { client.answers.last?.event?.lost != nil }
    #expect(client.answers.map(\.id) == [9, 1, 9] && server.unreadBytes(of: first) == 0)
  }

  @Test func `A connection without a request is closed when a new client needs its place`() throws {
    var quota = ClientQuota()
    quota.maxClients = 2
    try server(quota: quota)
    requests.answersAtOnce = true
    let silent = try ControlTestClient(path)
    let second = try ControlTestClient(path)
    try second.ask(1)
    try turn(second) { second.answers.count == 1 }
    let third = try ControlTestClient(path)
    try third.ask(2)
    try turn(third) { third.answers.count == 1 }
    try turn(silent) { silent.hasEnded }
    // Both have sent a request by now. A further client waits until one of them disconnects.
    let fourth = try ControlTestClient(path)
    try fourth.ask(3)
    try second.ask(4)
    try turn(second) { second.answers.count == 2 }
    try third.ask(5)
    try turn(third) { third.answers.count == 2 }
    #expect(!requests.ids.contains(3))
    shutdown(third.socket.raw, Int32(SHUT_RDWR))
    try turn(fourth) { fourth.answers.map(\.id) == [3] }
    #expect(!second.hasEnded)
  }

  @Test func `A connection that takes too long to send a request is closed, and no other`() throws {
    var quota = ClientQuota()
    quota.timeout = .milliseconds(200)
    try server(quota: quota, checkInterval: .milliseconds(10))
    requests.answersAtOnce = true
    let (slow, idle) = (try ControlTestClient(path), try ControlTestClient(path))
    try slow.send("{\"id\":")
    try idle.ask(1)
    try turn(slow) { slow.hasEnded }
    try idle.read()
    // A client may wait between two requests without a limit. On a slow machine its first request
    // came too late.
    if requests.ids == [1] {
      #expect(!idle.hasEnded)
      try idle.ask(2)
      try turn(idle) { idle.answers.map(\.id) == [1, 2] }
    }
  }

  @Test func `Requests of a client that leaves are carried out, without an answer`() throws {
    let server = try server()
    var leaving: ControlTestClient? = try ControlTestClient(path)
    let other = try ControlTestClient(path)
    try leaving?.ask(1...20)
    leaving = nil
    try loop.turn { requests.ids.count == 20 && server.process(of: first) == nil }
    for id in 1...20 as ClosedRange<UInt64> { requests.answer(id) }
    try other.ask(30)
    try loop.turn { requests.ids.last == 30 }
    requests.answer(30)
    try turn(other) { other.answers.map(\.id) == [30] }
  }

  @Test func `Some requests of one client are handled, and then those of others`() throws {
    try server()
    requests.answersAtOnce = true
    let (busy, other) = (try ControlTestClient(path), try ControlTestClient(path))
    try busy.ask(100)
    try other.ask(1)
    try loop.turn { requests.ids.count == 2 }
    try busy.ask(101...200)
    try other.ask(2)
    try turn(busy) { busy.answers.count == 101 }
    try turn(other) { other.answers.count == 2 }
    #expect(busy.answers.map(\.id) == Array(100...200))
    let index = requests.ids.firstIndex(of: 2) ?? .max
    #expect(index < 2 + ControlServer.maxAtOnce + 1, "at place \(index)")
  }

  @Test func `Requests of a client that has left are handled some at a time, too`() throws {
    let server = try server()
    var leaving: ControlTestClient? = try ControlTestClient(path)
    try leaving?.ask(1...200)
    leaving = nil
    var maximum = 0
    try loop.turn {
      let before = requests.ids.count
      try loop.turn(until: EventLoop.now + .milliseconds(2))
      maximum = max(maximum, requests.ids.count - before)
      return !requests.ids.isEmpty && server.process(of: first) == nil
    }
    #expect(requests.ids == Array(1...200))
    #expect(maximum <= 2 * ControlServer.maxAtOnce, "\(maximum) in one turn of the loop")
  }

  @Test func `A client isn't read further while its earlier requests wait`() throws {
    try server()
    requests.answersAtOnce = true
    let client = try ControlTestClient(path)
    let line = Array(try WireCodec.line(for: ControlRequest(id: 1, verb: .wake, worker: "web")))
    let lines = Array(repeatElement(line, count: 4096).joined())
    var (remainder, sent) = (lines[...], 0)
    for _ in 0..<200 {
      let left = try client.offer(remainder)
      sent += remainder.count - left.count
      remainder = left.isEmpty ? lines[...] : left
      try loop.turn(until: EventLoop.now + .milliseconds(2))
    }
    let unhandled = sent - requests.ids.count * line.count
    // The bytes are in the sockets' buffers and in one piece.
    #expect(unhandled < 2 << 20, "\(unhandled) bytes")
  }

  @Test func `Requests to end are answered when the end is announced`() throws {
    let server = try server()
    let clients = [
      try ControlTestClient(path), try ControlTestClient(path), try ControlTestClient(path),
    ]
    try clients[0].ask(1, .leave)
    try loop.turn { world.phase.isLeaving }
    try clients[1].ask(2, .shutdown)
    try clients[2].ask(3)
    try loop.turn { world.phase.isEnding && requests.ids == [3] }
    try clients[0].read()
    #expect(clients[0].answers.isEmpty)
    server.announceEnd("all workers have ended")
    server.announceEnd("a second time")
    requests.answer(3)
    server.close()
    for client in clients { try turn(client) { !client.answers.isEmpty } }
    #expect(clients.map { $0.answers.map(\.id) } == [[1], [2], [3]])
    #expect(clients[0].answers[0].text == "all workers have ended")
    #expect(clients[1].answers[0].text == "all workers have ended")
    #expect(clients[2].answers[0].text == "the daemon is ending", "its outcome came too late")
    #expect(access(path, F_OK) != 0)
  }
}
