import Lifecycle
import Policy

@testable import Daemon
@testable import Simulation

/// The real `RestartSupervisor`, `DependencyStarter`, `WorkerSupervision` and `FirstMoments` over a simulated world,
/// wired as the daemon wires them.
final class ShellSupervision: RestartHost, DependencyHost, SupervisionHost, FirstMomentsHost {
  private unowned let world: ShellWorld
  private let files = FakeStateFiles()
  private var allTerms: [WorkerID: RestartTerms] = [:]
  private var allDependencies: [WorkerID: [Dependency]] = [:]
  private(set) lazy var restarts = RestartSupervisor(
    timers: world.clock, wallClock: { [unowned self] in world.clock.now.nanoseconds },
    stopped: StoppedByPerson(path: "/nowhere/stopped", files: files), host: self)
  private lazy var starter = DependencyStarter(self)
  private lazy var supervision = WorkerSupervision(
    restarts: restarts, starter: starter, host: self)
  private lazy var firstMoments = FirstMoments(
    timers: world.clock, restarts: restarts, host: self)
  /// They say when they are ready.
  private var sayWhenReady: Set<WorkerID> = []
  private(set) var isClosing = false
  /// Since they last began to run.
  private var stoppedByPerson: Set<WorkerID> = []

  init(_ world: ShellWorld) { self.world = world }

  /// - Parameter before: what the worker may depend on.
  func add(_ id: WorkerID, before: [WorkerID], using random: inout SplitMix64) {
    let condition = random.pick(RestartRules.Condition.allCases)
    allTerms[id] = RestartTerms(
      rules: RestartRules(
        condition,
        giveUp: random.pick([nil, RestartRules.GiveUp(restarts: 2, window: .seconds(60))])))
    if let other = before.last, random.chance(40) {
      allDependencies[id] = [
        Dependency(other.name, random.pick(Dependency.Condition.allCases))
      ]
    }
    if random.chance(50) { sayWhenReady.insert(id) }
    restarts.add(id, exits: [])
  }

  /// As `ControlOfDaemon` does.
  func start(_ id: WorkerID, _ verb: Request.Verb, then answer: @escaping (Answer) -> Void) {
    starter.start(id, verb) { [unowned self] in firstMoments.watch(id, $0, then: answer) }
  }

  func personAsks(_ verb: Request.Verb, _ id: WorkerID) {
    if verb == .stop || verb == .terminate { stoppedByPerson.insert(id) }
    supervision.personAsks(verb, id)
  }

  func note(_ transition: Transition) {
    if transition.to == .launching { stoppedByPerson.remove(transition.worker) }
    supervision.supervise(transition)
  }

  /// The daemon ends: nothing is started any more.
  func close() {
    isClosing = true
    starter.stopWaiting("the daemon is ending")
  }

  /// How a worker ended that `restart: always` should have started again; nil: it runs, or may be down.
  func forgotten(_ id: WorkerID) -> String? {
    guard allTerms[id]?.rules.condition == .always, !stoppedByPerson.contains(id),
      state(of: id) == .terminated,
      restarts.problem(of: id) == nil, restarts.plan(of: id) == nil,
      starter.awaited(by: id) == nil, let cause = world.driver.state.snapshot(of: id)?.cause
    else { return nil }
    switch cause {
    case .requested, .added, .released: return nil
    default: return "\(cause)"
    }
  }

  // MARK: hosts

  var pressure: PressureLevel { world.driver.state.pressure }
  var now: Instant { world.clock.now }

  func state(of id: WorkerID) -> WorkerState? { world.driver.state.state(of: id) }

  func lastExit(of id: WorkerID) -> ExitStatus? { world.driver.state.snapshot(of: id)?.lastExit }

  func terms(of id: WorkerID) -> RestartTerms? { allTerms[id] }

  func start(_ id: WorkerID, then answer: @escaping (Answer) -> Void) {
    starter.start(id, .restart, occasion: .restart, then: answer)
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) {}

  func dependencies(of id: WorkerID) -> [Dependency] { allDependencies[id] ?? [] }

  func standing(of id: WorkerID) -> DependencyStanding {
    var standing = DependencyStanding(state: state(of: id))
    standing.hasProcess = world.hasRun(id)
    standing.willRestart = restarts.plan(of: id) != nil
    standing.lastEnd = restarts.lastEnd(of: id)
    standing.lastExit = restarts.exits(of: id)?.last?.why
    return standing
  }

  func request(
    _ verb: Request.Verb, _ id: WorkerID, asked: Instant?, occasion: Request.Occasion?,
    then answer: @escaping (Answer) -> Void
  ) {
    world.driver.request(verb, id, asked: asked, occasion: occasion, then: answer)
  }

  func record(problem: String, of id: WorkerID) { restarts.record(problem: problem, of: id) }

  func dropStore(of id: WorkerID) {}
  func hasEnded(_ id: WorkerID, _ cause: Cause) {}
  func followLiveness(of id: WorkerID, _ transition: Transition?) {
    if let runtime = world.workers[id] {
      world.liveness.supervisor.followLiveness(of: runtime, transition)
    }
  }
  func forgetTraffic(of id: WorkerID) {}
  func remove(_ id: WorkerID) { world.complain("\(id) is removed") }

  // MARK: the first moments of a run

  func saysWhenReady(_ id: WorkerID) -> Bool { sayWhenReady.contains(id) }
  func isAlive(_ id: WorkerID) -> Bool { state(of: id)?.isAlive == true }
  func instance(of id: WorkerID) -> AnyObject? { world.workers[id] }
  func hasExited(_ id: WorkerID) -> Bool { world.workers[id]?.hasExited ?? true }
  func runs(_ id: WorkerID) -> Bool { state(of: id)?.runs == true }

  func look(at id: WorkerID, then: @escaping (RestLook?) -> Void) -> Bool {
    guard world.hasRun(id) else { return false }
    world.count("first look")
    world.after(.milliseconds(100), rarely: .seconds(8)) { [self] in
      let found = world.chance(10) ? nil : RestLook(timeUsed: world.pick([3, 30]), rests: true)
      world.report(late: .seconds(30), twice: .seconds(10)) { then(found) }
    }
    return true
  }
}
