import Glibc
import Linux
import Policy
import Testing

@testable import Daemon

@Suite("A request for memory over a worker's own channels") struct ShedOverSocketTests {
  private func connected(
    _ body: (ConversationWorld, WorkerConversation, WorkerSocketPeer, ShedWorld) throws -> Void
  ) throws {
    let world = try ShedWorld()
    let talk = world.talk
    let conversation = try talk.begin()
    let worker = try talk.connect(conversation)
    _ = try worker.hear()
    try body(talk, conversation, worker, world)
  }

  @Test func `A shed request over the socket is answered by its done alone`() throws {
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

  @Test func `A shed request has the pressure level, or announces the background`() throws {
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

  @Test func `A shed request by command and socket is answered when both are done`() throws {
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

  @Test func `A shed request isn't missed if all asked connections have closed`() throws {
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

  @Test func `Listeners at MEMORY_PRESSURE_WATCH are asked, and measured`() throws {
    try connected { talk, conversation, worker, world in
      worker.hangUp()
      let listener = try UnixSocket.connected(
        to: try #require(conversation.pressurePath), .stream)
      try talk.watches.serve()
      let first = try world.begin(.notify)
      #expect(listener.arrived().bytes.count == 1)
      talk.timers.advance(by: .seconds(1))
      #expect(world.isAnswered)
      first.end()
      try talk.notify("X_DORMOUSE_DONE=1", conversation)
      try talk.watches.serve()
      talk.forget()
      let second = try world.begin(nil)
      talk.timers.advance(by: .seconds(10))
      #expect(listener.arrived().bytes.count == 1 && world.events == [])
      second.end()
    }
  }
}

@Suite("A request for memory over HTTP") struct ShedOverHTTPTests {
  private let world: ShedWorld
  private let request = Policy.Probe.HTTPRequest(port: 80, path: "/shed")

  init() throws { world = try ShedWorld() }

  @Test func `An HTTP response answers a shed request`() throws {
    let attempt = try world.begin(.http(request))
    #expect(world.questions.world.asked.map(\.timeout) == [.seconds(5)])
    #expect(world.isAsked)
    world.timers.advance(by: .seconds(2))
    #expect(world.events == [])
    world.questions.answer(.success)
    #expect(world.isAnswered)
    #expect(world.isAsked, "the worker may still hold the connection")
    attempt.end()
    world.timers.advance(by: QuietQuestion.closingTime)
    #expect(!world.isAsked && world.questions.ended == 1)
    #expect(world.questions.world.dropped == 0 && world.logged == [])
  }

  @Test func `After a failed shed request over HTTP the footprint is watched`() throws {
    let attempt = try world.begin(.http(request))
    defer { attempt.end() }
    world.questions.answer(.failure("status 500"))
    #expect(world.logged == ["its shed request failed: status 500"] && world.events == [])
    world.timers.advance(by: .seconds(1))
    #expect(world.isAnswered)
  }

  @Test func `A shed request over HTTP is dropped when its time is over`() throws {
    try world.begin(.http(request)).finish()
    #expect(world.questions.world.dropped == 1)
    #expect(world.logged.first == "its shed request failed: no answer in time")
    world.questions.answer(.success)
    world.timers.advance(by: .seconds(5))
    #expect(world.events.count == 1 && !world.isAsked && world.questions.ended == 1)
  }

  @Test func `A shed request's traffic isn't activity, and traffic before it is`() throws {
    try world.questions.watchTraffic()
    world.questions.world.hasTraffic = true
    let attempt = try world.begin(.http(request))
    defer { attempt.end() }
    #expect(world.questions.active == 1 && world.questions.world.asked.count == 1)
    world.questions.world.hasTraffic = true
    world.questions.answer(.success)
    #expect(world.questions.world.looks == 1)
    world.timers.advance(by: QuietQuestion.closingTime)
    #expect(
      world.questions.world.looks == 2 && world.questions.active == 1
        && !world.isAsked)
    #expect(world.questions.ended == 1)
  }

  @Test func `Traffic before a shed request that ends during the reading of it is activity`() throws
  {
    try world.questions.watchTraffic()
    world.questions.world.hasTraffic = true
    world.questions.world.whenLooking = { [talk = world.talk] in talk.worker.shed?.end() }
    _ = try world.begin(.http(request))
    #expect(world.questions.active == 1 && world.questions.world.asked.isEmpty)
    world.timers.advance(by: .seconds(5))
    #expect(!world.isAsked)
  }
}
