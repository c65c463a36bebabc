import Lifecycle
import Policy

@testable import Daemon
@testable import Simulation

/// The real `RestartSupervisor` and `DependencyStarter` over a simulated world, wired as the daemon wires them.
final class ShellSupervision: RestartHost, DependencyHost {
  private unowned let world: ShellWorld
  private let files = FakeStateFiles()
  private var allTerms: [WorkerID: RestartTerms] = [:]
  private var allDependencies: [WorkerID: [Dependency]] = [:]
  private(set) lazy var restarts = RestartSupervisor(
    timers: world.clock, wallClock: { [unowned self] in world.clock.now.nanoseconds },
    stopped: StoppedByPerson(path: "/nowhere/stopped", files: files), host: self)
  private lazy var starter = DependencyStarter(self)
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
    restarts.add(id, exits: [])
  }

  /// A person's verb, as `ControlService` carries it out.
  func carryOut(_ verb: Request.Verb, _ id: WorkerID, then answer: @escaping (Answer) -> Void) {
    if isClosing, verb == .start || verb == .restart {
      return answer(Answer(.refused, "the daemon is ending"))
    }
    restarts.personAsks(verb, id)
    if verb == .stop || verb == .terminate { stoppedByPerson.insert(id) }
    switch verb {
    case .start, .restart: starter.start(id, verb, then: answer)
    default:
      if verb == .stop || verb == .terminate { starter.stopWaiting(id, "it was stopped") }
      world.driver.request(verb, id, then: answer)
    }
  }

  func note(_ transition: Transition) {
    if transition.to == .launching { stoppedByPerson.remove(transition.worker) }
    restarts.record(transition)
    starter.advance()
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
    starter.start(id, .restart, then: answer)
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
    _ verb: Request.Verb, _ id: WorkerID, asked: Instant?, then answer: @escaping (Answer) -> Void
  ) {
    world.driver.request(verb, id, asked: asked, then: answer)
  }

  func record(problem: String, of id: WorkerID) { restarts.record(problem: problem, of: id) }
}
