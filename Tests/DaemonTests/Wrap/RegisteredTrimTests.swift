import Control
import Glibc
import Lifecycle
import Linux
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

  @Test func `Memory of a running wrapped worker is trimmed by its wrapper when memory is short`() {
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

  @Test func `A wrapper of an earlier version, which doesn't know the verb, is asked once`() {
    world.register(report())
    world.press(.critical)
    world.answer(.badRequest, "can't read the request: `verb` has an unknown value")
    world.pass(.seconds(300))
    #expect(world.asked == ["trim clangd"])
  }

  @Test func `After a refusal the wrapper is asked again later`() {
    world.register(report())
    world.press(.critical)
    world.answer(.failed, "clangd can't be trimmed: there is no swap")
    #expect(world.asked == ["trim clangd"])
    world.pass(.seconds(120))
    world.press(.critical)
    #expect(world.asked.count == 2)
  }

  @Test func `What a wrapper reports in swap isn't expected to be trimmed again`() {
    world.register(report(swapped: 85))
    #expect(world.driver.state.swapped(of: id) == .megabytes(85))
    world.press(.critical)
    #expect(world.asked.isEmpty)
  }
}

@Suite("Asking wrapped workers for memory") struct RegisteredShedTests {
  private let world = WrapperWorld()
  private let id = WorkerID("clangd")

  private func pressRunning() {
    var running = world.report("background")
    running.canShed = true
    world.register(running)
    world.press(.critical)
  }

  @Test func `A wrapped worker that can be asked for memory is asked through its wrapper`() {
    pressRunning()
    #expect(world.asked == ["warn clangd"])
    world.answer(.done, "freed 30 MB")
    #expect(world.asked == ["warn clangd", "status clangd"])
    world.answer(.done, "", world.report("background", megabytes: 60).worker)
    #expect(world.driver.state.footprint(of: id) == .megabytes(60))
    let last = world.driver.state.snapshot(of: id)?.lastShed
    #expect(last?.before == .megabytes(90) && last?.after == .megabytes(60))
  }

  @Test func `A wrapper that can't ask its worker for memory isn't waited for`() {
    pressRunning()
    world.answer(.refused, "clangd can't be asked to free memory while suspended")
    world.answer(.refused)
    #expect(world.driver.state.snapshot(of: id)?.lastShed?.after == .megabytes(90))
    #expect(world.logged.contains { $0.contains("can't be asked") })
  }
}

@Suite("Protection of a wrapped worker") struct WrappedProtectionTests {
  private let world = WrapperWorld()

  @Test func `A wrapped worker's protection is in its wrapper's answers, too`() throws {
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

@Suite("Ending what a registered wrapper stands in for") struct WrapperEndingTests {
  // A worker that the ladder can hibernate isn't terminated.
  private let world: WrapperWorld = {
    var policy = LifecyclePolicy(name: "test")
    policy.ladder = Ladder(warning: [], urgent: [], critical: [.terminate(.suspended)])
    return WrapperWorld(policy)
  }()
  private var wrappers: RegisteredWrappers { world.wrappers }
  private let id = WorkerID("clangd")

  // MARK: termination

  private func pressEnding(_ mayBeTerminated: Bool? = true) {
    world.register(WrapperWorld.report("clangd", "suspended", mayBeTerminated: mayBeTerminated))
    world.press(.critical)
  }

  @Test func `A wrapped worker that may be terminated is ended by its wrapper, and then removed`() {
    pressEnding()
    #expect(world.asked == ["terminate clangd"] && world.state("clangd") == .terminating)
    world.leave()
    #expect(world.state("clangd") == nil && world.killed.isEmpty)
    world.answer(.done, "clangd has ended")
    #expect(world.logged.count == 1)
  }

  @Test(arguments: [nil, false])
  func `Without permission a worker is neither terminated nor killed`(mayBeTerminated: Bool?) {
    pressEnding(mayBeTerminated)
    world.pass(.seconds(600))
    #expect(!world.asked.contains("terminate clangd") && world.killed.isEmpty)
    #expect(world.state("clangd")?.isAlive == true)
  }

  @Test func `A wrapper that refuses to terminate its worker is killed after the grace`() throws {
    pressEnding()
    world.answer(.failed, "clangd can't be reached: its wrapper didn't answer")
    #expect(world.logged.last == "clangd can't be reached: its wrapper didn't answer")
    let reported = world.timers.now
    world.pass(.seconds(60))
    let kill = try #require(world.killed.first)
    #expect(kill.pid == 77 && kill.before < reported)
    #expect(world.logged.contains { $0.contains("killed with its wrapper, pid 77") })
    world.leave()
    #expect(world.state("clangd") == nil)
  }

  @Test(arguments: [0, 1, 78])
  func `A wrapper is killed only if the kernel names the pid that it reports`(pid: Int32) {
    pressEnding()
    world.processes[ClientID(number: 1)] = pid
    world.pass(.seconds(60))
    #expect(world.state("clangd") == .terminating && world.killed.isEmpty)
    #expect(world.logged.contains { $0.contains("is not killed") })
  }

  @Test func `A wrapper that takes its permission back before the kill is not killed`() {
    pressEnding()
    world.register(WrapperWorld.report("clangd", "suspended", mayBeTerminated: false))
    world.pass(.seconds(60))
    #expect(world.killed.isEmpty)
  }

  @Test(arguments: [false, true])
  func `The outcome of killing a wrapper is logged`(hasEnded: Bool) {
    let error = SystemCallError("kill", on: "pid 77", code: EPERM)
    world.kill = hasEnded ? .success(false) : .failure(error)
    pressEnding()
    world.pass(.seconds(60))
    let text = hasEnded ? "has ended" : "can't be killed: \(error)"
    #expect(world.logged.contains { $0.contains(text) })
  }

  @Test func `Directives for the daemon's own workers don't reach a wrapper`() {
    world.register(world.report("suspended"))
    let web = WorkerID("web")
    for directive: Directive in [
      .hibernate(web), .terminate(web), .kill(web), .inspect(web), .launch(id), .suspend(id),
      .resume(id), .measure(id),
    ] { #expect(!wrappers.execute(directive)) }
    #expect(world.asked.isEmpty)
  }
}
