import Lifecycle
import Policy
import PolicyFile
import Testing

@testable import Daemon

@Suite("Workers that a reload removes or changes") struct DeclaredChangesTests {
  private final class Host: DeclaredChangeHost {
    var whenStopped: (WorkerID) -> Void = { _ in }
    private(set) var calls: [String] = []

    func environment(of configuration: WorkerConfiguration) -> [String: String] {
      ["HOME": "/root"].merging(configuration.environment) { $1 }
    }
    func stop(_ id: WorkerID) {
      calls.append("stop \(id)")
      whenStopped(id)
    }
    func startAgain(_ id: WorkerID) { calls.append("start \(id) again") }
    func forgetPlans(of id: WorkerID) { calls.append("forget plans of \(id)") }
    func removeWorker(_ id: WorkerID) { calls.append("remove \(id)") }
    func rulesHaveChanged(of id: WorkerID) { calls.append("rules of \(id)") }
    func closeListeners(of runtime: WorkerUnit) { calls.append("close \(runtime.id)") }
    func listenAgain(for runtime: WorkerUnit) { calls.append("listen for \(runtime.id)") }
  }

  private let timers = FakeTimers()
  private let notes = EventNotes()
  private let workers = WorkerRegistry()
  private let host = Host()
  private let driver: EngineDriver
  private let changes: DeclaredChanges
  private let unit = WorkerUnit.forTest("web")
  private var id: WorkerID { unit.id }

  init() {
    driver = .forTest(timers, notes)
    changes = DeclaredChanges(driver: driver, workers: workers, host: host)
    workers[unit.id] = unit
    driver.send(.added(unit.id, unit.profile))
    host.whenStopped = { [driver] in driver.request(.stop, $0) { _ in } }
  }

  private func run() { driver.send(.adopted(id, unit.profile, .background)) }

  @Test("A worker that doesn't run is forgotten at once")
  func removed() {
    changes.remove(id)
    #expect(host.calls == ["forget plans of web", "close web", "remove web"])
    #expect(driver.state.state(of: id) == nil)
  }

  @Test("A worker that runs is stopped first, and forgotten when it has ended")
  func removedAlive() {
    run()
    changes.remove(id)
    #expect(host.calls == ["forget plans of web", "stop web", "close web"])
    #expect(driver.state.state(of: id) == .terminating && !unit.isDeclared)
    driver.send(.exited(id, .exited(0)))
    #expect(driver.state.state(of: id) == nil)
  }

  @Test("A worker of another supervisor is neither stopped nor forgotten, and isn't started")
  func external() {
    unit.external = ExternalWorker()
    run()
    changes.remove(id)
    #expect(host.calls == ["forget plans of web"] && !unit.isDeclared)
    changes.apply(.forTest("web"), of: id)
    #expect(host.calls.suffix(1) == ["rules of web"] && unit.isDeclared)
    #expect(driver.state.state(of: id) == .background)
  }

  @Test(
    "One that is declared again before it has ended isn't forgotten, and starts again by itself")
  func declaredAgain() {
    run()
    changes.remove(id)
    changes.apply(.forTest("web") { $0.importance = 7 }, of: id)
    #expect(unit.isDeclared && unit.configuration.importance == 7)
    #expect(host.calls.suffix(2) == ["rules of web", "start web again"])
    driver.send(.exited(id, .exited(0)))
    #expect(driver.state.state(of: id) == .terminated, "the configuration has it")
  }

  @Test("The machine's new policy keeps the values that `run` and `adopt` have chosen")
  func chosenPolicy() {
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

  @Test("One that is declared again without `autostart` ends, and stays")
  func declaredAgainWithoutStart() {
    run()
    changes.remove(id)
    changes.apply(.forTest("web") { $0.autostart = false }, of: id)
    #expect(!host.calls.contains("start web again"))
    driver.send(.exited(id, .exited(0)))
    #expect(driver.state.state(of: id) == .terminated)
  }

  @Test("A change reaches the engine, and the sockets of a worker that doesn't run")
  func changed() {
    changes.apply(.forTest("web") { $0.environment = ["PORT": "80"] }, of: id)
    #expect(unit.environment == ["HOME": "/root", "PORT": "80"])
    #expect(host.calls == ["rules of web", "listen for web"])
    run()
    changes.apply(.forTest("web"), of: id)
    #expect(host.calls == ["rules of web", "listen for web", "rules of web"])
    #expect(notes.events == ["added", "profileChanged", "adopted", "profileChanged"])
  }

  @Test("A policy alone changes nothing else, and a worker that there isn't is left alone")
  func policy() {
    var policy = LifecyclePolicy(name: "other")
    policy.hibernate.enabled = false
    changes.setPolicy(policy, of: id)
    #expect(unit.configuration.policy == policy && host.calls.isEmpty)
    let unknown = WorkerID("unknown")
    changes.setPolicy(policy, of: unknown)
    changes.apply(.forTest("unknown"), of: unknown)
    #expect(changes.known(unknown) == nil && changes.known(id)?.isDeclared == true)
    #expect(notes.events == ["added", "profileChanged"])
  }
}
