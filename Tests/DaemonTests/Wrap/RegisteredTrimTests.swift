import Control
import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("Trimming wrapped workers") struct RegisteredTrimTests {
  private let world: WrapperWorld
  private let id = WorkerID("clangd")

  init() {
    var policy = LifecyclePolicy(name: "test")
    policy.ladder.critical = [.trim]
    world = WrapperWorld(policy)
  }

  private func report(swapped: Int64 = 0, isTrimmed: Bool = false) -> WrapperReport {
    var report = WrapperWorld.report("clangd", "background", megabytes: 90)
    var trim = TrimReport(
      code: "trimmed", text: "trimmed", swapped: swapped << 20, trims: isTrimmed ? 1 : 0)
    if isTrimmed {
      trim.last = TrimReport.Last(
        secondsAgo: 0, residentBefore: 90 << 20, residentAfter: (90 - swapped) << 20,
        swapped: swapped << 20, seconds: 0.1, stoppedSeconds: 0.02)
    }
    if swapped > 0 { report.worker.trim = trim }
    return report
  }

  @Test("Memory of a running wrapped worker is trimmed by its wrapper when memory is short")
  func trimmed() {
    world.register(report())
    world.press(.critical)
    #expect(world.asked == ["trim clangd"])
    world.answer(.done, "clangd was trimmed")
    #expect(world.asked == ["trim clangd", "status clangd"])
    world.answer(.done, "", report(swapped: 80, isTrimmed: true).worker)
    let trim = world.driver.state.snapshot(of: id)?.trim
    #expect(trim?.last?.residentAfter == .megabytes(10) && trim?.swapped == .megabytes(80))
    #expect(trim?.last?.stoppedFor == .milliseconds(20))
    #expect(world.driver.state.footprint(of: id) == .megabytes(90))
    // There isn't enough left for another trim.
    world.pass(.seconds(300))
    #expect(world.asked.count == 2)
  }

  @Test("A wrapper of an earlier version, which doesn't know the verb, is asked once")
  func earlierVersion() {
    world.register(report())
    world.press(.critical)
    world.answer(.badRequest, "can't read the request: `verb` has an unknown value")
    world.pass(.seconds(300))
    #expect(world.asked == ["trim clangd"])
  }

  @Test("After a refusal the wrapper is asked again later")
  func refused() {
    world.register(report())
    world.press(.critical)
    world.answer(.failed, "clangd can't be trimmed: there is no swap")
    #expect(world.asked == ["trim clangd"])
    world.pass(.seconds(120))
    world.press(.critical)
    #expect(world.asked.count == 2)
  }

  @Test("What a wrapper reports in swap isn't expected to be trimmed again")
  func alreadyInSwap() {
    world.register(report(swapped: 85))
    #expect(world.driver.state.swapped(of: id) == .megabytes(85))
    world.press(.critical)
    #expect(world.asked.isEmpty)
  }
}
