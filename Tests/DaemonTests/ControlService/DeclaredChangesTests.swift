import Lifecycle
import Policy
import PolicyFile
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("Workers that a reload removes or changes") struct DeclaredChangesTests {
  private let world: AdapterWorld
  private let changes: ConfigurationReloader
  private let unit: WorkerUnit
  private var id: WorkerID { unit.id }
  private var driver: EngineDriver { world.driver }

  init() throws {
    world = try AdapterWorld()
    changes = world.makeReloader { _ in }
    unit = try world.add("web", .terminated) { $0.restart = RestartWorld.rules }
    world.reportEnd(unit, RestartWorld.failure)
  }

  private func run() { driver.send(.adopted(id, unit.profile, .background)) }

  private var isPlanned: Bool { world.restarts.histories[id]?.plan != nil }

  /// The number of sockets that wait for connections.
  private var sockets: Int { world.watches.active }

  private func listen() throws -> (inout WorkerConfiguration) -> Void {
    let port = try freePort()
    let socket = ListenSocket(name: "http", address: .tcp(host: "127.0.0.1", port: port))
    return { $0.listen = [socket] }
  }

  @Test func `A worker that doesn't run is forgotten at once, with all it had`() throws {
    changes.apply(.forTest("web", try listen()))
    #expect(sockets == 1 && isPlanned)
    changes.remove(id)
    #expect(world.workers[id] == nil && driver.state.state(of: id) == nil)
    #expect(sockets == 0 && !isPlanned)
  }

  @Test func `A worker that runs is stopped first, and forgotten when it has ended`() {
    run()
    changes.remove(id)
    #expect(world.asked == ["stop web"] && !isPlanned && world.workers[id] === unit)
    #expect(driver.state.state(of: id) == .terminating && !unit.isDeclared)
    driver.send(.exited(id, .exited(0)))
    #expect(driver.state.state(of: id) == nil)
  }

  @Test func `A worker of another supervisor is neither stopped, forgotten nor started`() {
    unit.external = ExternalWorker()
    run()
    changes.remove(id)
    #expect(world.asked == [] && !isPlanned && !unit.isDeclared)
    changes.apply(.forTest("web"))
    #expect(world.asked == [] && unit.isDeclared)
    #expect(driver.state.state(of: id) == .background)
  }

  @Test(arguments: [true, false])
  func `One that is declared again before it has ended starts only by autostart`(starts: Bool) {
    run()
    changes.remove(id)
    changes.apply(.forTest("web") { ($0.importance, $0.autostart) = (7, starts) })
    #expect(unit.isDeclared && unit.configuration.importance == 7)
    #expect(world.asked == (starts ? ["stop web", "restart web"] : ["stop web"]))
    driver.send(.exited(id, .exited(0)))
    #expect(driver.state.state(of: id) == (starts ? .launching : .terminated))
  }

  @Test func `The machine's new policy keeps the values that run and adopt have chosen`() {
    unit.configuration.settings = ["hibernate.after=7m"]
    changes.setPolicy(LifecyclePolicy(name: "new"), of: id)
    #expect(unit.configuration.policy.name == "new")
    #expect(unit.configuration.policy.hibernate.after == .seconds(420))
    unit.external = ExternalWorker(chosen: AdoptedPolicy(settings: ["hibernate.after=9m"]))
    changes.setPolicy(LifecyclePolicy(name: "newer"), of: id)
    #expect(unit.configuration.policy.name == "newer")
    #expect(unit.configuration.policy.hibernate.after == .seconds(540))
    unit.external = ExternalWorker(chosen: AdoptedPolicy(name: "server"))
    changes.setPolicy(LifecyclePolicy(name: "newest"), of: id)
    #expect(unit.configuration.policy.name == "newer", "a named policy stays")
  }

  @Test func `A change reaches the engine, and the sockets of a worker that doesn't run`() throws {
    let listen = try listen()
    run()
    unit.traffic = try TrafficMonitor(latches: nil, daemonSockets: [])
    changes.apply(.forTest("web", listen))
    #expect(unit.traffic == nil, "it is looked at as it is configured now")
    #expect(sockets == 0, "it has those with which it was launched")
    driver.send(.exited(id, .exited(0)))
    world.notes.forget()
    changes.apply(
      .forTest("web") {
        listen(&$0)
        $0.environment = ["PORT": "80"]
        $0.restart.condition = .never
      })
    #expect(unit.environment == ["HOME": "/root", "PORT": "80"])
    #expect(sockets == 1 && !isPlanned && world.notes.events == ["profileChanged"])
  }

  @Test func `A policy alone changes nothing else, and a worker that there isn't is left alone`() {
    var policy = LifecyclePolicy(name: "other")
    policy.hibernate.enabled = false
    changes.setPolicy(policy, of: id)
    #expect(unit.configuration.policy == policy && isPlanned)
    let unknown = WorkerID("unknown")
    changes.setPolicy(policy, of: unknown)
    changes.apply(.forTest("unknown"))
    #expect(world.workers[unknown] == nil && unit.isDeclared)
    #expect(world.notes.events == ["profileChanged"])
  }
}
