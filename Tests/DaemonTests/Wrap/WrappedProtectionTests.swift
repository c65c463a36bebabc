import Control
import Lifecycle
import Testing

@testable import Daemon

@Suite("Protection of a wrapped worker") struct WrappedProtectionTests {
  private let world = WrapperWorld()

  @Test("A wrapped worker that is protected here is reported so, also in its wrapper's answers")
  func shown() throws {
    let report = WrapperWorld.report("clangd", "suspended", mayBeTerminated: true)
    world.register(report)
    #expect(world.wrappers.report(of: "clangd")?.protection == nil)
    world.driver.send(.request(Request(id: 1, verb: .protect, worker: WorkerID("clangd"))))
    let code = "protected_by_request"
    #expect(world.wrappers.report(of: "clangd")?.protection?.code == code)
    #expect(world.wrappers.reports().map(\.protection?.code) == [code])

    var answer: ControlResponse?
    world.wrappers.relay(
      ControlRequest(id: 7, verb: .explain, worker: "clangd"), timeout: .seconds(1)
    ) { answer = $0 }
    var response = ControlResponse(id: 1, result: .done, text: "", workers: [report.worker])
    response.explanation = ExplanationReport(
      worker: "clangd", state: "suspended", secondsInState: 1,
      because: CodedText("idle", "idle"), isShadow: false)
    try #require(world.asks.first).respond(response)
    #expect(answer?.explanation?.protection?.code == code)
    #expect(answer?.workers?.first?.protection?.code == code)
  }
}
