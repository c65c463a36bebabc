import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("What a worker's transition sets off") struct WorkerSupervisionTests {
  private final class Host: SupervisionHost, DependencyHost {
    private(set) var calls: [String] = []
    var needs: [WorkerID: [Dependency]] = [:]
    private(set) var asked: [String] = []

    func dropStore(of id: WorkerID) { calls.append("drop store") }
    func hasEnded(_ id: WorkerID, _ cause: Cause) { calls.append("ended: \(cause.sentence)") }
    func followLiveness(of id: WorkerID, _ transition: Transition?) {
      calls.append(transition == nil ? "liveness, as configured" : "liveness")
    }
    func forgetTraffic(of id: WorkerID) { calls.append("forget traffic") }
    func remove(_ id: WorkerID) { calls.append("remove") }

    var now: Instant { .zero }
    func dependencies(of id: WorkerID) -> [Dependency] { needs[id] ?? [] }
    func standing(of id: WorkerID) -> DependencyStanding { DependencyStanding(state: .terminated) }
    func request(
      _ verb: Request.Verb, _ id: WorkerID, asked: Instant?, occasion: Request.Occasion?,
      then answer: @escaping (Answer) -> Void
    ) {
      self.asked.append(id.name)
    }
    func record(problem: String, of id: WorkerID) {}
  }

  private let world = RestartWorld()
  private let host = Host()
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
    #expect(host.calls.prefix(2) == ["liveness", "liveness"])
    #expect(host.calls.dropFirst(2).first?.hasPrefix("ended: ") == true)
    #expect(host.calls.count == 4 && host.calls.last == "liveness")
    #expect(world.delay() != nil, "it is started again")
  }

  @Test("A worker's stored descriptors are dropped only if its end was requested")
  func store() {
    transit(to: .launching, .requested(.start))
    transit(to: .terminated, .requested(.stop))
    #expect(host.calls.contains("drop store"))
    #expect(host.calls.filter { $0.hasPrefix("ended: ") }.count == 1)
  }

  @Test("A second transition to terminated only updates the probes")
  func again() {
    transit(to: .terminated, .requested(.stop))
    #expect(host.calls == ["liveness"])
  }

  @Test("The operator's stop ends a worker's wait for its dependencies")
  func stopped() {
    host.needs[id] = [Dependency("db", .ready)]
    var answers: [Answer] = []
    starter.start(id) { answers.append($0) }
    #expect(host.asked == ["db"] && answers.isEmpty)
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
    #expect(host.calls.last == "remove" && world.supervisor.exits(of: id) == nil)
  }

  @Test("A new configuration applies to the probe and to the look at traffic")
  func configuration() {
    supervision.restartRulesChanged(id)
    #expect(host.calls == ["liveness, as configured", "forget traffic"])
  }
}
