import Lifecycle
import Policy
import PolicyFile

@testable import Daemon
@testable import Simulation

/// The real `RestartSupervisor`, `DependencyStarter`, `WorkerSupervision` and `FirstMoments` over a simulated world,
/// wired as the daemon wires them.
final class ShellSupervision: RestartHost, DependencyHost, SupervisionHost, FirstMomentsHost {
  private unowned let world: ShellWorld
  private let files = FakeStateFiles()
  /// Whose rules have been changed since they ended.
  private var changedSince: Set<WorkerID> = []
  private(set) lazy var restarts = RestartSupervisor(
    timers: world.clock, wallClock: { [unowned self] in world.clock.now.nanoseconds },
    stopped: StoppedByPerson(path: "/nowhere/stopped", files: files), host: self)
  private(set) lazy var starter = DependencyStarter(self)
  private(set) lazy var real = WorkerSupervision(restarts: restarts, starter: starter, host: self)
  private lazy var firstMoments = FirstMoments(
    timers: world.clock, restarts: restarts, host: self)
  /// Since they last began to run.
  private var stoppedByPerson: Set<WorkerID> = []

  init(_ world: ShellWorld) { self.world = world }

  /// As `ControlOfDaemon` does.
  func start(_ id: WorkerID, _ verb: Request.Verb, then answer: @escaping (Answer) -> Void) {
    starter.start(id, verb) { [unowned self] in firstMoments.watch(id, $0, then: answer) }
  }

  func personAsks(_ verb: Request.Verb, _ id: WorkerID) {
    if verb == .stop || verb == .terminate { stoppedByPerson.insert(id) }
    real.personAsks(verb, id)
  }

  func note(_ transition: Transition) {
    if transition.to == .launching {
      stoppedByPerson.remove(transition.worker)
      changedSince.remove(transition.worker)
    }
    real.supervise(transition)
  }

  /// As `ControlOfDaemon` does.
  func launch(
    _ configuration: WorkerConfiguration, environment: [String: String],
    then answer: @escaping (Answer) -> Void
  ) {
    let runtime = WorkerUnit(
      configuration: configuration, environment: environment, isDeclared: false)
    restarts.add(runtime.id, exits: [])
    world.workers[runtime.id] = runtime
    world.driver.send(.added(runtime.id, runtime.profile))
    world.requests.request(.start, runtime.id) { [firstMoments] in
      firstMoments.watch(runtime.id, $0, then: answer)
    }
  }

  /// How a worker ended that `restart: always` should have started again; nil: it runs, or may be down.
  func forgotten(_ id: WorkerID) -> String? {
    guard terms(of: id)?.rules.condition == .always, !stoppedByPerson.contains(id),
      !changedSince.contains(id),
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

  func room(for footprint: ByteCount) -> MemoryRoom { world.driver.state.room(for: footprint) }
  var now: Instant { world.clock.now }

  func state(of id: WorkerID) -> WorkerState? { world.driver.state.state(of: id) }

  func lastExit(of id: WorkerID) -> ExitStatus? { world.driver.state.snapshot(of: id)?.lastExit }

  var isClosing: Bool { world.phase.isClosing }

  func terms(of id: WorkerID) -> RestartTerms? {
    world.workers[id].map {
      RestartTerms(
        rules: $0.configuration.restart, importance: $0.configuration.importance,
        isExternal: $0.external != nil)
    }
  }

  func start(_ id: WorkerID, then answer: @escaping (Answer) -> Void) {
    starter.start(id, .restart, occasion: .restart, then: answer)
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) {}

  func dependencies(of id: WorkerID) -> [Dependency] {
    world.workers[id]?.configuration.dependsOn ?? []
  }

  func standing(of id: WorkerID) -> DependencyStanding {
    var standing = DependencyStanding(
      state: state(of: id), isAdopting: world.returning.isAdopting(id))
    standing.hasProcess = world.workers[id]?.process != nil
    standing.willRestart = restarts.plan(of: id) != nil
    standing.lastEnd = restarts.lastEnd(of: id)
    standing.lastExit = restarts.exits(of: id)?.last?.why
    return standing
  }

  func request(
    _ verb: Request.Verb, _ id: WorkerID, asked: Instant?, occasion: Request.Occasion?,
    then answer: @escaping (Answer) -> Void
  ) {
    world.requests.request(verb, id, asked: asked, occasion: occasion, then: answer)
  }

  func record(problem: String, of id: WorkerID) { restarts.record(problem: problem, of: id) }

  func dropStore(of id: WorkerID) {}
  func hasEnded(_ id: WorkerID, _ cause: Cause) {}
  func followLiveness(of id: WorkerID, _ transition: Transition?) {
    if transition == nil, state(of: id) == .terminated { changedSince.insert(id) }
    if let runtime = world.workers[id] {
      world.liveness.supervisor.followLiveness(of: runtime, transition)
    }
  }
  func forgetTraffic(of id: WorkerID) {}
  func remove(_ id: WorkerID) { world.runs.remove(id) }

  // MARK: the first moments of a run

  func saysWhenReady(_ id: WorkerID) -> Bool {
    world.workers[id]?.configuration.readiness != nil
  }
  func isAlive(_ id: WorkerID) -> Bool { world.requests.isAlive(id) }
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
