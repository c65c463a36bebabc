import Glibc
import Policy
import TestSupport
import Testing

@testable import Daemon
@testable import Linux
@testable import Supervision

/// The sockets are real, since the tests check what the kernel shows of them. There is no process,
/// and time passes when a test says so.
@Suite("Health checks of a sleeping worker") struct HealthCheckResponderTests {
  private let timers = FakeLoop()
  private let watches = FakeLoop()
  private let wakes = Recorded<String>()
  private let listener: TestListener
  private let answerer: HealthCheckResponder

  init() throws {
    listener = try TestListener()
    answerer = HealthCheckResponder(watches, timers) { _ in }
  }

  private func answer(_ path: String? = nil) {
    answerer.answer(at: [listener.asleep], [AsleepAnswer(port: listener.port, path: path)]) {
      [wakes] in wakes.all.append($0)
    }
  }

  /// Serves until the daemon has closed its end of the connection.
  private func serve(_ client: LoopbackClient) throws -> String {
    let isAnswered = try eventually {
      try watches.serve()
      return client.readToEnd()
    }
    if !isAnswered { throw TestFailure("no end of the answer: \(client.received)") }
    return client.received
  }

  // MARK: a port alone

  @Test func `A health check that connects and closes is answered, and wakes no worker`() throws {
    answer()
    #expect(answerer.count == 0)
    for count in 1...3 {
      try LoopbackClient(listener.port).hangUp()
      try listener.wait(for: .onlyChecks(1))
      try watches.serve()
      #expect(answerer.count == count)
    }
    #expect(wakes.all.isEmpty && listener.asleep.queued == 0)
    // The next sleep counts its own.
    answer()
    #expect(answerer.count == 0 && watches.active == 1)
  }

  @Test func `A client that sends data wakes the worker once, and stays in its queue`() throws {
    answer()
    let client = try LoopbackClient(listener.port)
    try client.say("GET / HTTP/1.1\r\n\r\n")
    try listener.wait(for: .request)
    try watches.serve()
    #expect(wakes.all == ["a connection on port \(listener.port)"])
    try watches.serve()
    timers.advance(by: .seconds(10))
    #expect(wakes.all.count == 1 && listener.asleep.queued == 1 && answerer.count == 0)
    #expect(!client.readToEnd())
  }

  @Test func `A client that connects and stays silent wakes the worker after 200 ms`() throws {
    answer()
    let client = try LoopbackClient(listener.port)
    try listener.wait(for: .silent)
    try watches.serve()
    timers.advance(by: .milliseconds(199))
    #expect(wakes.all.isEmpty)
    timers.advance(by: .milliseconds(1))
    #expect(wakes.all == ["a connection on port \(listener.port)"])
    #expect(timers.pending.isEmpty && !client.readToEnd())
  }

  @Test func `A client that closes within 200 ms was a health check`() throws {
    answer()
    let client = try LoopbackClient(listener.port)
    try listener.wait(for: .silent)
    try watches.serve()
    #expect(watches.active == 0)
    client.hangUp()
    try listener.wait(for: .onlyChecks(1))
    timers.advance(by: .milliseconds(20))
    #expect(answerer.count == 1 && wakes.all.isEmpty)
    #expect(watches.active == 1 && timers.pending.isEmpty)
  }

  @Test(arguments: [nil, "/healthz"])
  func `While no descriptor is free, health checks are answered later`(path: String?) throws {
    answer(path)
    let client = try LoopbackClient(listener.port)
    if path == nil { client.hangUp() } else { try client.say("GET /healthz HTTP/1.1\r\n\r\n") }
    if path == nil {
      try listener.wait(for: .onlyChecks(1))
    } else {
      try listener.wait(for: .request)
    }
    try InjectedFault(EMFILE, of: "a connection").during { try watches.serve() }
    #expect(watches.active == 0 && answerer.count == 0 && listener.asleep.queued == 1)
    timers.advance(by: HealthCheckResponder.shortagePause)
    #expect(watches.active == 1 && wakes.all.isEmpty)
    if path == nil { try watches.serve() } else { _ = try serve(client) }
    #expect(answerer.count == 1 && listener.asleep.queued == 0)
  }

  // MARK: a port and a path

  @Test func `An HTTP request for the health check's path is answered with 200`() throws {
    answer("/healthz")
    let client = try LoopbackClient(listener.port)
    try client.say("GET /healthz?full HTTP/1.1\r\n")
    try client.say("Host: localhost\r\n\r\n")
    let answer = try serve(client)
    #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n") && answer.hasSuffix("\r\n\r\nasleep\n"))
    let head = try LoopbackClient(listener.port)
    try head.say("HEAD /healthz HTTP/1.0\r\n\r\n")
    #expect(try serve(head).hasSuffix("\r\n\r\n"))
    #expect(answerer.count == 2 && wakes.all.isEmpty && timers.pending.isEmpty)
  }

  @Test func `A request for another path is answered with 503, and wakes the worker`() throws {
    answer("/healthz")
    let client = try LoopbackClient(listener.port)
    try client.say("GET /orders HTTP/1.1\r\n\r\n")
    let answer = try serve(client)
    #expect(answer.hasPrefix("HTTP/1.1 503 ") && answer.contains("\r\nRetry-After: 1\r\n"))
    #expect(wakes.all == ["a request on port \(listener.port), not a health check"])
    #expect(answerer.count == 0)
  }

  @Test func `A request that isn't complete after a second wakes the worker`() throws {
    answer("/healthz")
    let client = try LoopbackClient(listener.port)
    try client.say("GET /hea")
    // The connection is accepted, and its data read.
    #expect(try eventually { try watches.serveOnce() && watches.active == 2 })
    try watches.serve()
    timers.advance(by: .milliseconds(999))
    #expect(wakes.all.isEmpty)
    timers.advance(by: .milliseconds(1))
    #expect(wakes.all.count == 1 && watches.active == 1)
    #expect(try serve(client).hasPrefix("HTTP/1.1 503 "))
  }

  @Test func `A client that connects to an HTTP check's port and closes is a check`() throws {
    answer("/healthz")
    try LoopbackClient(listener.port).hangUp()
    #expect(
      try eventually {
        try watches.serve()
        return answerer.count == 1
      })
    #expect(wakes.all.isEmpty && timers.pending.isEmpty && watches.active == 1)
  }

  @Test func `A client beyond 64 at the same time is answered with 503`() throws {
    answer("/healthz")
    let clients = try (0..<64).map { _ in try LoopbackClient(listener.port) }
    #expect(
      try eventually {
        try watches.serve()
        return watches.active == 65
      })
    #expect(try serve(LoopbackClient(listener.port)).hasPrefix("HTTP/1.1 503 "))
    #expect(wakes.all.isEmpty && clients.allSatisfy { !$0.readToEnd() })
  }

  @Test func `At most 64 connections are accepted before the loop handles other events`() throws {
    answer("/healthz")
    let clients = try (0..<100).map { _ in try LoopbackClient(listener.port) }
    try #require(try eventually { listener.asleep.queued == 100 })
    try watches.serveOnce()
    #expect(listener.asleep.queued == 36)
    try watches.serve()
    #expect(listener.asleep.queued == 0)
    // 64 clients at the same time may send their request.
    #expect(try eventually { clients.count { $0.readToEnd() } == 36 })
  }

  // MARK: end

  @Test func `When the worker wakes, waiting clients are answered with 503`() throws {
    answer("/healthz")
    let client = try LoopbackClient(listener.port)
    #expect(
      try eventually {
        try watches.serve()
        return watches.active == 2
      })
    answerer.stop()
    #expect(answerer.count == nil && watches.active == 0 && timers.pending.isEmpty)
    #expect(try serve(client).hasPrefix("HTTP/1.1 503 "))
    #expect(wakes.all.isEmpty)
    // The worker can serve this connection.
    let later = try LoopbackClient(listener.port)
    try watches.serve()
    #expect(!later.readToEnd())
  }
}
