import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("What a worker's transition sets off") struct WorkerSupervisionTests {
  private let world = RestartWorld()
  private let host = FakeSupervisionHost()
  private let starter: DependencyStarter
  private let supervision: WorkerSupervision
  private let id = WorkerID("web")

  init() {
    starter = DependencyStarter(host)
    supervision = WorkerSupervision(restarts: world.supervisor, starter: starter, host: host)
    world.add("web")
  }

  private func transit(to state: WorkerState, _ cause: Cause) {
    supervision.supervise(world.host.transit("web", to: state, cause))
  }

  @Test("A worker's end plans its restart, ends its probes and answers waiting clients")
  func ended() {
    transit(to: .launching, .requested(.start))
    transit(to: .background, .becameReady)
    transit(to: .terminated, RestartWorld.failure)
    #expect(host.calls.prefix(2) == ["liveness of web", "liveness of web"])
    #expect(host.calls.dropFirst(2).first?.hasPrefix("web has ended: ") == true)
    #expect(host.calls.count == 4 && host.calls.last == "liveness of web")
    #expect(world.delay() != nil, "it is started again")
  }

  @Test("A worker's stored descriptors are dropped only if its end was requested")
  func store() {
    transit(to: .launching, .requested(.start))
    transit(to: .terminated, .requested(.stop))
    #expect(host.calls.contains("drop store of web"))
    #expect(host.calls.filter { $0.hasPrefix("web has ended: ") }.count == 1)
  }

  @Test("A second transition to terminated only updates the probes")
  func again() {
    transit(to: .terminated, .requested(.stop))
    #expect(host.calls == ["liveness of web"])
  }

  @Test("The operator's stop ends a worker's wait for its dependencies")
  func stopped() {
    host.needs[id] = [Dependency("db", .ready)]
    var answers: [Answer] = []
    starter.start(id) { answers.append($0) }
    #expect(host.asked == ["restart db"] && answers.isEmpty)
    supervision.personAsks(.stop, id)
    #expect(answers.map(\.text) == ["web was stopped before it was started"])
  }

  @Test("A worker that is removed from the configuration waits no longer for its dependencies")
  func undeclared() {
    host.needs[id] = [Dependency("db", .ready)]
    var answers: [Answer] = []
    starter.start(id) { answers.append($0) }
    supervision.forgetPlans(of: id)
    #expect(answers.map(\.text) == ["web is no longer in the configuration"])
    supervision.removeWorker(id)
    #expect(host.calls.last == "remove web" && world.supervisor.exits(of: id) == nil)
  }

  @Test("A new configuration applies to the probe and to the look at traffic")
  func configuration() {
    supervision.restartRulesChanged(id)
    #expect(host.calls == ["liveness of web, as configured", "forget traffic of web"])
  }
}
