import Glibc
import Linux
import Policy
import Testing
import WorkerProtocol

@testable import Daemon

@Suite("A request for memory over a worker's own channels") struct ShedOverSocketTests {
  private func connected(
    _ body: (ConversationWorld, WorkerConversation, WorkerSocketPeer, ShedWorld) throws -> Void
  ) throws {
    let world = try ShedWorld()
    let talk = world.talk
    let conversation = try talk.begin()
    defer { conversation.end() }
    let worker = try talk.connect(conversation)
    _ = try worker.hear()
    try body(talk, conversation, worker, world)
  }

  /// The number of requests since the last call.
  private static func heard(_ listener: Descriptor) -> Int {
    var bytes = [UInt8](repeating: 0, count: 64)
    return recv(listener.raw, &bytes, bytes.count, Int32(MSG_DONTWAIT))
  }

  @Test("A shed request over the socket is answered by `done`, and not by a stable footprint")
  func socket() throws {
    try connected { talk, conversation, worker, world in
      let attempt = try world.begin(nil)
      let asked = try #require(try worker.hear().requests.first)
      #expect(
        asked.request
          == .memoryWarning(level: "warning", footprintBytes: ByteCount.megabytes(100).bytes))
      #expect(asked.seconds == 5)
      talk.timers.advance(by: .seconds(4))
      #expect(world.events == [] && world.source.count == 1)
      try worker.say(.done(id: asked.id))
      try talk.watches.serve()
      #expect(world.isAnswered)
      attempt.finish()
      #expect(world.events.count == 2)
    }
  }

  @Test(
    "A shed request over the socket has the current pressure level, or announces the background")
  func kinds() throws {
    try connected { talk, conversation, worker, world in
      talk.pressure = .critical
      try world.begin(nil).end()
      try world.begin(nil, .didEnterBackground).end()
      let asked = try worker.hear().requests.map(\.request)
      #expect(
        asked == [
          .memoryWarning(
            level: "critical", footprintBytes: ByteCount.megabytes(100).bytes),
          .didEnterBackground,
        ])
    }
  }

  @Test("A shed request by command and over the socket is answered when both are done")
  func both() throws {
    for isCommandFirst in [false, true] {
      try connected { talk, conversation, worker, world in
        let attempt = try world.begin(.command(["/bin/true"]))
        defer { attempt.end() }
        let asked = try #require(try worker.hear().requests.first)
        #expect(try world.start(attempt))
        if isCommandFirst { #expect(try world.end(attempt)) }
        try worker.say(.done(id: asked.id))
        try talk.watches.serve()
        if !isCommandFirst {
          #expect(world.events == [])
          #expect(try world.end(attempt))
        }
        talk.timers.advance(by: .seconds(3))
        #expect(world.isAnswered)
      }
    }
  }

  @Test("A shed request isn't reported as missed if all connections that were asked have closed")
  func abandoned() throws {
    try connected { talk, conversation, worker, world in
      let attempt = try world.begin(nil)
      worker.hangUp()
      try talk.watches.serve()
      #expect(world.events == [])
      attempt.finish()
      #expect(
        world.events == [
          .shedAnswered(world.id),
          .shedFinished(world.id, before: .megabytes(100), after: .megabytes(100)),
        ])
    }
  }

  @Test func `A worker whose run has ended answers no shed request`() throws {
    try connected { talk, conversation, _, world in
      let attempt = try world.begin(nil)
      conversation.end()
      attempt.end()
      talk.timers.advance(by: .seconds(10))
      #expect(world.events == [])
    }
  }

  @Test("Listeners at MEMORY_PRESSURE_WATCH are asked; a stable footprint or the worker answers")
  func listeners() throws {
    try connected { talk, conversation, worker, world in
      worker.hangUp()
      let listener = try UnixSocket.connected(
        to: try #require(conversation.pressurePath), .stream)
      try talk.watches.serve()
      let first = try world.begin(.notify)
      #expect(Self.heard(listener) == 1)
      talk.timers.advance(by: .seconds(1))
      #expect(world.isAnswered)
      first.end()
      try talk.notify("X_DORMOUSE_DONE=1", conversation)
      try talk.watches.serve()
      talk.forget()
      let second = try world.begin(nil)
      talk.timers.advance(by: .seconds(10))
      #expect(Self.heard(listener) == 1 && world.events == [])
      second.end()
    }
  }
}
