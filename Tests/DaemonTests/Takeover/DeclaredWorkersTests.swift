import Lifecycle
import Policy
import PolicyFile
import Testing

@testable import Daemon

@Suite("Workers that the configuration declares") struct DeclaredWorkersTests {
  private let world: AdoptionWorld
  private let declared: DeclaredWorkers

  init() throws {
    world = try AdoptionWorld()
    declared = world.base.declared
  }

  private static func worker(
    _ name: String, needs: [String] = [], autostart: Bool = true
  ) -> WorkerConfiguration {
    .forTest(name) {
      $0.dependsOn = needs.map { Dependency($0) }
      $0.autostart = autostart
    }
  }

  private func begin(_ configurations: [WorkerConfiguration]) {
    for worker in configurations { declared.addDeclared(worker) }
    world.adopt()
    declared.startWorkers(configurations)
  }

  private var started: [String] { world.base.asked }

  private func becomeReady(_ name: String) {
    world.driver.send(.launched(WorkerID(name)))
    world.base.starter.advance()
  }

  @Test func `All declared workers are known, with environment, before the first starts`() {
    begin([.forTest("web") { $0.environment = ["PORT": "80"] }, .forTest("db")])
    #expect(world.events == ["added", "added", "request", "request"])
    #expect(started == ["start web", "start db"])
    #expect(world.workers[WorkerID("web")]?.environment == ["HOME": "/root", "PORT": "80"])
    #expect(world.state(of: "web") == .launching)
  }

  @Test func `A declared worker starts after its dependencies, if it has autostart`() {
    begin([
      Self.worker("web", needs: ["api"]), Self.worker("api", needs: ["db"]),
      Self.worker("later", autostart: false), Self.worker("db"),
    ])
    #expect(started == ["start db"])
    becomeReady("db")
    #expect(started == ["start db", "start api"])
    becomeReady("api")
    #expect(started == ["start db", "start api", "start web"])
  }

  @Test func `A worker that was stopped stays stopped if its restart rule says so`() throws {
    for name in ["web", "db"] { world.base.restarts.setStopped(WorkerID(name), true) }
    begin([
      .forTest("web") { $0.restart.condition = .unlessStopped },
      .forTest("db") { $0.restart.condition = .always },
    ])
    #expect(started == ["start db"])
    #expect(world.base.logged.contains(" web: stays stopped"))
    let file = try world.base.scratch.write("stopped", "db\nweb\n")
    let next = RestartSupervisor(
      timers: world.base.timers, stoppedFile: file, files: FakeStateFiles(),
      phase: world.base.phase, driver: world.driver, workers: world.workers, log: world.base.log)
    #expect(next.isStopped(WorkerID("web")) && !next.isStopped(WorkerID("api")))
  }

  @Test(arguments: [false, true])
  func `A worker that was in the foreground is adopted before others start, if they do`(
    isLeaving: Bool
  ) throws {
    try world.leave("web", .foreground)
    begin([Self.worker("web"), Self.worker("db")])
    #expect(started == [], "web's own start waits for its adoption, too")
    world.base.phase.isLeaving = isLeaving
    world.recovered()
    // `restart` displaces no other worker from the foreground.
    #expect(started == (isLeaving ? ["restart web"] : ["restart web", "restart db"]))
  }

  @Test func `A running or unknown worker isn't started; a refused start is logged`() throws {
    try world.leave("web")
    world.declare(.forTest("web"))
    world.adopt()
    world.recovered()
    declared.startAutomatically(WorkerID("web"))
    declared.startAutomatically(WorkerID("nothing"))
    #expect(started.isEmpty)
    world.declare(.forTest("db"))
    declared.startAutomatically([Self.worker("db"), Self.worker("off", autostart: false)])
    #expect(started == ["start db"])
    world.driver.send(.launchFailed(WorkerID("db"), "no such program"))
    #expect(world.base.logged.contains(" db could not be launched: no such program"))
  }
}
