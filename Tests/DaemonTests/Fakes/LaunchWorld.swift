import Lifecycle
import Policy

@testable import Daemon

/// The steps of one launch, each of which ends when a test says so, and what they have made.
final class FakeLaunch: LaunchSteps {
  let steps: [LaunchStep]
  var isWanted = true
  var pid: Int32?
  /// Each step succeeds before `perform` returns.
  var succeedsAtOnce = false
  private(set) var performed: [LaunchStep] = []
  private(set) var undoCount = 0
  /// What there is of the launch in the world.
  private(set) var made: Set<LaunchStep> = []
  private var answers: [LaunchStep: (String?) -> Void] = [:]
  private var undone: [() -> Void] = []

  init(_ steps: [LaunchStep] = LaunchStep.allCases) { self.steps = steps }

  func perform(
    _ step: LaunchStep, within limit: Duration, then: @escaping (_ refusal: String?) -> Void
  ) {
    performed.append(step)
    answers[step] = then
    if step == .program { pid = 4711 }
    if succeedsAtOnce { answer(step) }
  }

  /// As often as a test wants to.
  func answer(_ step: LaunchStep, _ refusal: String? = nil) {
    // What comes after the way back was taken is taken away again.
    if refusal == nil, undoCount == 0 { made.insert(step) }
    answers[step]?(refusal)
  }

  /// Until this step is under way.
  func succeed(until step: LaunchStep) {
    for earlier in steps.prefix(while: { $0 != step }) { answer(earlier) }
  }

  func undo(then: @escaping () -> Void) {
    undoCount += 1
    undone.append(then)
  }

  func finishUndoing() {
    made = []
    pid = nil
    for then in undone { then() }
  }
}

/// The real engine and launcher over launches that go as a test says.
final class LaunchWorld: EngineObserver, LaunchHost {
  let timers = FakeTimers()
  let driver: EngineDriver
  let workers = WorkerRegistry()
  let id = WorkerID("web")
  /// One that says when it is ready.
  let slow = WorkerID("slow")
  private(set) lazy var launcher = WorkerLauncher(
    driver: driver, workers: workers, timers: timers, host: self,
    machine: .init(most: launchesAtOnce) { true })
  let launchesAtOnce: Int
  var obstacle: String?
  /// The launches so far.
  private(set) var launches: [FakeLaunch] = []
  /// What the next launch is.
  var next: () -> FakeLaunch = { FakeLaunch() }
  /// What the engine has heard of launches.
  private(set) var events: [String] = []
  /// What the host was called for, in order.
  private(set) var calls: [String] = []
  private(set) var directives: [Directive] = []
  private(set) var answers: [Answer] = []
  private(set) var lines: [String] = []

  init(launchesAtOnce: Int = 4) {
    self.launchesAtOnce = launchesAtOnce
    let policy = LifecyclePolicy(name: "test")
    driver = EngineDriver(
      Engine(policy: policy), clock: timers,
      replies: RequestReplies(FakeRecords(), timers: timers))
    driver.connect([self, launcher]) { [unowned self] in execute($0) }
    driver.send(.added(id, WorkerProfile(policy: policy)))
  }

  var state: WorkerState? { driver.state.state(of: id) }

  /// It is asked to start; its launch, if there is one.
  @discardableResult
  func start() -> FakeLaunch? {
    let before = launches.count
    request(.start)
    return launches.count > before ? launches.last : nil
  }

  func request(_ verb: Request.Verb) { driver.request(verb, id) { [self] in answers.append($0) } }

  // MARK: the engine's side

  private func execute(_ directive: Directive) {
    directives.append(directive)
    if case .launch(let id) = directive { launcher.launch(id) }
  }
  func handled(_ event: Event, directives: [Directive], engine: Engine, at now: Instant) {
    switch event {
    case .launched: events.append("launched")
    case .launchFailed(_, let why): events.append("failed: \(why)")
    default: break
    }
  }

  // MARK: the launcher's side

  func steps(ofLaunching id: WorkerID) -> (any LaunchSteps)? {
    guard id == self.id || id == slow else { return nil }
    let launch = next()
    launches.append(launch)
    return launch
  }
  func obstacle(toLaunching id: WorkerID) -> String? { obstacle }
  func programRuns(_ id: WorkerID) { calls.append("runs") }
  func hasLaunched(_ id: WorkerID) { calls.append("launched") }
  func launchHasFailed(_ id: WorkerID) { calls.append("failed") }
  func log(_ id: WorkerID, _ text: String) { lines.append(text) }
}
