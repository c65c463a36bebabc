import Control
import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("Ending what a registered wrapper stands in for") struct WrapperEndingTests {
  // A worker that the ladder can hibernate isn't terminated.
  private let world: WrapperWorld = {
    var policy = LifecyclePolicy(name: "test")
    policy.ladder = Ladder(warning: [], urgent: [], critical: [.terminate(.suspended)])
    return WrapperWorld(policy)
  }()
  private var wrappers: RegisteredWrappers { world.wrappers }
  private let id = WorkerID("clangd")

  private func report(_ state: String, megabytes: Int64 = 90) -> WrapperReport {
    WrapperWorld.report("clangd", state, megabytes: megabytes)
  }

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

  @Test(
    "Without its wrapper's permission a worker is neither terminated nor killed",
    arguments: [nil, false])
  func protected(mayBeTerminated: Bool?) {
    pressEnding(mayBeTerminated)
    world.pass(.seconds(600))
    #expect(!world.asked.contains("terminate clangd") && world.killed.isEmpty)
    #expect(world.state("clangd")?.isAlive == true)
  }

  @Test("A wrapper's refusal to terminate is logged, and the wrapper is killed after the grace")
  func killed() throws {
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

  @Test(
    arguments: [(WrapperKill.hasEnded, "has ended"), (.failed("EPERM"), "can't be killed: EPERM")])
  func `The outcome of killing a wrapper is logged`(outcome: WrapperKill, text: String) {
    world.kill = outcome
    pressEnding()
    world.pass(.seconds(60))
    #expect(world.logged.contains { $0.contains(text) })
  }

  @Test func `Directives for the daemon's own workers don't reach a wrapper`() {
    world.register(report("suspended"))
    let web = WorkerID("web")
    for directive: Directive in [
      .hibernate(web), .terminate(web), .kill(web), .inspect(web), .launch(id), .suspend(id),
      .resume(id), .measure(id),
    ] { #expect(!wrappers.execute(directive)) }
    #expect(world.asked.isEmpty)
  }
}
