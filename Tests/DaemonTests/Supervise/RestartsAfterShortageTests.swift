import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("Restarts after a shortage of memory") struct RestartsAfterShortageTests {
  private let world: RestartWorld
  private let web = WorkerID("web")
  private var supervisor: RestartSupervisor { world.supervisor }

  init() throws { world = try RestartWorld() }

  @Test func `A worker terminated for memory comes back by default, when its footprint has room`() {
    world.add("web", RestartRules())
    world.setMemory(free: .megabytes(40))
    supervisor.record(footprint: .megabytes(60), lastLine: nil, of: web)
    world.run("web", .pressure(.critical))
    world.timers.advance(by: .seconds(120))
    #expect(world.restarted == [] && supervisor.histories[web]?.plan != nil)
    world.setMemory(free: .megabytes(80))
    world.timers.advance(by: .seconds(31))
    #expect(world.restarted == ["web"])
  }

  @Test("A worker terminated while launching needs room for the footprint of its last full run")
  func whileLaunching() {
    world.add("web", RestartRules())
    supervisor.record(footprint: .megabytes(60), lastLine: nil, of: web)
    world.run("web", .exited(.exited(0)))
    world.setMemory(free: .megabytes(40))
    world.driver.request(.start, web) { _ in }
    #expect(world.state(of: "web") == .launching)
    supervisor.record(footprint: .megabytes(5), lastLine: nil, of: web)
    world.end("web", .pressure(.critical))
    world.timers.advance(by: .seconds(120))
    #expect(world.restarted == [] && supervisor.histories[web]?.plan != nil)
    world.setMemory(free: .megabytes(80))
    world.timers.advance(by: .seconds(31))
    #expect(world.restarted == ["web"])
  }

  @Test("A worker that is larger than the whole memory isn't started and terminated without end")
  func tooLarge() {
    world.add()
    world.setMemory(free: .megabytes(16), budget: .megabytes(16))
    supervisor.record(footprint: .megabytes(24), lastLine: nil, of: web)
    world.run("web", .pressure(.critical))
    world.timers.advance(by: .seconds(600))
    #expect(world.restarted == [] && supervisor.histories[web]?.plan == nil)
    #expect(supervisor.histories[web]?.problem?.hasPrefix("not restarted: it had 24 MB") == true)
  }
}
