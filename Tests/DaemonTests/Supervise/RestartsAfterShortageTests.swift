import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("Restarts after a shortage of memory") struct RestartsAfterShortageTests {
  private let world = RestartWorld()
  private let web = WorkerID("web")
  private var host: FakeRestartHost { world.host }
  private var supervisor: RestartSupervisor { world.supervisor }

  @Test("A worker terminated for memory comes back by default, when its footprint has room")
  func room() {
    world.add("web", RestartRules())
    host.free = .megabytes(40)
    supervisor.record(footprint: .megabytes(60), lastWords: nil, of: web)
    world.run("web", .pressure(.critical))
    host.timers.advance(by: .seconds(120))
    #expect(host.names == [] && supervisor.plan(of: web) != nil)
    host.free = .megabytes(80)
    host.timers.advance(by: .seconds(31))
    #expect(host.names == ["web"])
  }

  @Test("A worker terminated while launching needs room for the footprint of its last full run")
  func whileLaunching() {
    world.add("web", RestartRules())
    supervisor.record(footprint: .megabytes(60), lastWords: nil, of: web)
    world.run("web", .exited(.exited(0)))
    host.free = .megabytes(40)
    supervisor.record(host.transit("web", to: .launching, .requested(.start)))
    supervisor.record(footprint: .megabytes(5), lastWords: nil, of: web)
    world.end("web", .pressure(.critical))
    host.timers.advance(by: .seconds(120))
    #expect(host.names == [] && supervisor.plan(of: web) != nil)
    host.free = .megabytes(80)
    host.timers.advance(by: .seconds(31))
    #expect(host.names == ["web"])
  }

  @Test("A worker that is larger than the whole memory isn't started and terminated without end")
  func tooLarge() {
    world.add()
    host.budget = .megabytes(16)
    supervisor.record(footprint: .megabytes(24), lastWords: nil, of: web)
    world.run("web", .pressure(.critical))
    host.timers.advance(by: .seconds(600))
    #expect(host.names == [] && supervisor.plan(of: web) == nil)
    #expect(supervisor.problem(of: web)?.hasPrefix("not restarted: it had 24 MB") == true)
  }
}
