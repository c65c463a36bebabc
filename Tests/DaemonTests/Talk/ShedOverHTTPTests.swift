import Policy
import Testing

@testable import Daemon

@Suite("A request for memory over HTTP") struct ShedOverHTTPTests {
  private let world: ShedWorld
  private let request = Policy.Probe.HTTPRequest(port: 80, path: "/shed")

  init() throws { world = try ShedWorld() }

  @Test func `An HTTP response answers a shed request`() throws {
    let attempt = try world.begin(.http(request))
    #expect(world.questions.world.asked.map(\.timeout) == [.seconds(5)])
    #expect(world.http.isAsking)
    world.timers.advance(by: .seconds(2))
    #expect(world.events == [])
    world.questions.answer(.success)
    #expect(world.isAnswered)
    #expect(world.http.isAsking, "the worker may still hold the connection")
    attempt.end()
    world.timers.advance(by: LivenessMonitor.closingTime)
    #expect(!world.http.isAsking && world.questions.ended == 1)
    #expect(world.questions.world.dropped == 0 && world.logged == [])
  }

  @Test("A shed request over HTTP that fails is logged, and the footprint is watched instead")
  func httpFails() throws {
    let attempt = try world.begin(.http(request))
    defer { attempt.end() }
    world.questions.answer(.failure("status 500"))
    #expect(world.logged == ["its shed request failed: status 500"] && world.events == [])
    world.timers.advance(by: .seconds(1))
    #expect(world.isAnswered)
  }

  @Test func `A shed request over HTTP is dropped when its time is over`() throws {
    let attempt = try world.begin(.http(request))
    attempt.finish()
    #expect(world.questions.world.dropped == 1)
    #expect(world.logged.first == "its shed request failed: no answer in time")
    world.questions.answer(.success)
    world.timers.advance(by: .seconds(5))
    #expect(world.events.count == 1 && !world.http.isAsking && world.questions.ended == 1)
  }

  @Test("A shed request's own traffic doesn't count as activity, and traffic before it does")
  func httpTraffic() throws {
    try world.questions.watchTraffic()
    world.questions.world.hasTraffic = true
    let attempt = try world.begin(.http(request))
    defer { attempt.end() }
    #expect(world.questions.active == 1 && world.questions.world.asked.count == 1)
    world.questions.world.hasTraffic = true
    world.questions.answer(.success)
    #expect(world.questions.world.looks == 1)
    world.timers.advance(by: LivenessMonitor.closingTime)
    #expect(
      world.questions.world.looks == 2 && world.questions.active == 1
        && !world.http.isDrainingTraffic)
    #expect(world.questions.ended == 1)
  }
}
