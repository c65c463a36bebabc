import Control
import Lifecycle
import Testing

@testable import Daemon

@Suite("Asking wrapped workers for memory") struct RegisteredShedTests {
  private let world = WrapperWorld()
  private let id = WorkerID("clangd")

  private func report(_ state: String, megabytes: Int64 = 90) -> WrapperReport {
    WrapperWorld.report("clangd", state, megabytes: megabytes)
  }

  @Test func `A wrapped worker that can be asked for memory is asked through its wrapper`() {
    var running = report("background")
    running.canShed = true
    world.register(running)
    world.press(.critical)
    #expect(world.asked == ["warn clangd"])
    world.answer(.done, "freed 30 MB")
    #expect(world.asked == ["warn clangd", "status clangd"])
    world.answer(.done, "", report("background", megabytes: 60).worker)
    #expect(world.driver.state.footprint(of: id) == .megabytes(60))
    let last = world.driver.state.snapshot(of: id)?.lastShed
    #expect(last?.before == .megabytes(90) && last?.after == .megabytes(60))
  }

  @Test func `A wrapper that can't ask its worker for memory isn't waited for`() {
    var running = report("background")
    running.canShed = true
    world.register(running)
    world.press(.critical)
    world.answer(.refused, "clangd can't be asked to free memory while suspended")
    world.answer(.refused)
    #expect(world.driver.state.snapshot(of: id)?.lastShed?.after == .megabytes(90))
    #expect(world.logged.contains { $0.contains("can't be asked") })
  }
}
