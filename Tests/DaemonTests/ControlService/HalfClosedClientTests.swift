import Control
import Glibc
import Policy
import TestSupport
import Testing

@testable import Daemon

@Suite("Clients of the control socket that end their output or read late")
struct HalfClosedClientTests {
  private let scratch: Scratch
  private let path: String
  private let loop: EventLoop
  private let requests: RelayedRequests
  private let server: ControlServer
  /// The first connection to the server.
  private let first = ClientID(number: 1)

  init() throws {
    scratch = try Scratch()
    path = scratch.path + "/control.sock"
    requests = try RelayedRequests()
    loop = requests.control.world.services.loop
    server = ControlServer(path: path, loop, DaemonLog())
    try server.open(requests.control.service)
    requests.control.server = server
  }

  private func turn(_ client: ControlTestClient, until isDone: () throws -> Bool) throws {
    try loop.turn {
      try client.read()
      return try isDone()
    }
  }

  @Test func `A client that has ended its output gets all its answers, and then the end`() throws {
    let client = try ControlTestClient(path)
    try client.ask(1...2)
    shutdown(client.socket.raw, Int32(SHUT_WR))
    try loop.turn { requests.ids == [1, 2] }
    requests.answer(2)
    try turn(client) { client.answers.map(\.id) == [2] }
    #expect(!client.hasEnded && server.process(of: first) != nil)
    requests.answer(1, String(repeating: "x", count: 1 << 20))
    try turn(client) { client.hasEnded }
    #expect(client.answers.map(\.id) == [2, 1])
    #expect(server.process(of: first) == nil)
  }

  @Test func `A client that has ended its output and asked for nothing is closed`() throws {
    let client = try ControlTestClient(path)
    shutdown(client.socket.raw, Int32(SHUT_WR))
    try turn(client) { client.hasEnded }
    #expect(server.process(of: first) == nil)
  }

  @Test func `A client that ends its output and then disconnects is forgotten`() throws {
    let client = try ControlTestClient(path)
    try client.ask(1)
    shutdown(client.socket.raw, Int32(SHUT_WR))
    try loop.turn { requests.ids == [1] }
    shutdown(client.socket.raw, Int32(SHUT_RDWR))
    try loop.turn { server.process(of: first) == nil }
    requests.answer(1)
  }

  @Test func `Requests that a full client has sent before are handled when it has read`() throws {
    let client = try ControlTestClient(path)
    try client.ask(1...40)
    try loop.turn { requests.ids.count >= ControlServer.maxAtOnce }
    requests.answer(1, String(repeating: "x", count: 1 << 20))
    // The time in which the other lines would be handled passes while the client is full.
    let end = EventLoop.now + .milliseconds(20)
    try loop.turn { EventLoop.now >= end }
    // Only further answers are written here, and no event of the socket.
    for id in 2...16 as ClosedRange<UInt64> {
      try client.read()
      requests.answer(id)
    }
    try loop.turn { requests.ids == Array(1...40) }
  }
}
