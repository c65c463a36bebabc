import Control
import Policy
import Testing

@testable import Daemon

@Suite("Requests for workers of wrappers") struct RelayedRequestTests {
  private let world = WrapperWorld()
  private var wrappers: RegisteredWrappers { world.wrappers }

  @Test(
    "A request for a wrapped worker is passed to its wrapper's socket, with the client's time limit"
  )
  func relays() {
    world.register(WrapperWorld.report("clangd", "suspended", megabytes: 90))
    var answers: [ControlResponse] = []
    wrappers.relay(
      ControlRequest(id: 7, verb: .wake, worker: "clangd"), timeout: .seconds(600)
    ) { answers.append($0) }
    #expect(world.asks.first?.request.id == 7 && world.asks.first?.timeout == .seconds(600))
    world.answer(.done, "awake")
    #expect(answers.map(\.text) == ["awake"])
  }

  @Test("A request for a worker whose wrapper has closed fails at once, with its own number")
  func relaysToNone() {
    var answers: [ControlResponse] = []
    wrappers.relay(
      ControlRequest(id: 7, verb: .wake, worker: "clangd"), timeout: .seconds(600)
    ) { answers.append($0) }
    #expect(answers.map(\.result) == [.failed] && answers.first?.id == 7)
    #expect(world.asks.isEmpty)
  }
}
