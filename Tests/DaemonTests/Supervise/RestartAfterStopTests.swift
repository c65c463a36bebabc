import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("Restarts of workers that were asked to stop") struct RestartAfterStopTests {
  private let world: RestartWorld
  private var supervisor: RestartSupervisor { world.supervisor }
  private let web = WorkerID("web")

  init() throws { world = try RestartWorld() }

  @Test(
    "A worker that was asked to stop while it ended for another reason isn't restarted",
    arguments: [
      Cause.watchdog("liveness probe failed"), .pressure(.critical), .exited(.signaled(11)),
      .failed("no such program"),
    ])
  func stoppedWhileEnding(cause: Cause) {
    world.add("web")
    world.launch()
    world.record(to: .terminating, cause)
    supervisor.operatorRequested(.stop, web)
    world.end("web", cause)
    #expect(supervisor.histories[web]?.plan == nil && world.timers.pending.isEmpty)
    #expect(supervisor.histories[web]?.lastEnd?.wasStopped == true)
    // The worker was started since.
    world.run("web", cause)
    #expect(supervisor.histories[web]?.plan != nil)
  }

  @Test func `A start that follows a request to stop permits restarts again`() {
    world.add("web")
    world.launch()
    supervisor.operatorRequested(.stop, web)
    supervisor.operatorRequested(.start, web)
    world.end()
    #expect(world.delay() == .seconds(1))
  }

  @Test("A worker that was asked to stop and dies while it is resumed for that isn't restarted")
  func stoppedWhileAsleep() {
    world.add("web")
    world.launch()
    world.record(to: .suspending, .idle(.zero))
    supervisor.operatorRequested(.stop, web)
    world.record(to: .suspended, .idle(.zero))
    world.record(to: .resuming, .requested(.stop))
    world.end()
    #expect(supervisor.histories[web]?.plan == nil)
  }

  @Test func `A worker whose stop failed is restarted when it ends by itself later`() {
    world.add("web")
    world.launch()
    world.record(to: .resuming, .requested(.stop))
    supervisor.operatorRequested(.stop, web)
    world.record(to: .hibernated, .failed("its image can't be read"))
    world.end()
    #expect(world.delay() == .seconds(1))
  }
}
