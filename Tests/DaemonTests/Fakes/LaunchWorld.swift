import Lifecycle
import Policy

@testable import Daemon

/// The steps of one launch, each of which ends when a test says so, and what they have created.
final class FakeLaunch: LaunchSteps {
  let steps: [LaunchStep]
  var isWanted = true
  var pid: Int32?
  /// Whether each step succeeds before `perform` returns.
  var succeedsAtOnce = false
  private(set) var performed: [LaunchStep] = []
  private(set) var undoCount = 0
  /// The steps whose result exists and hasn't been undone.
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

  /// Reports the outcome of a step. A test may call this any number of times.
  func answer(_ step: LaunchStep, _ refusal: String? = nil) {
    // What is created after `undo` is removed again.
    if refusal == nil, undoCount == 0 { made.insert(step) }
    answers[step]?(refusal)
  }

  /// Lets all earlier steps succeed, so that this step is in progress.
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

/// The real engine and launcher over launches whose outcome a test sets.
final class LaunchWorld: EngineObserver, LaunchHost {
  let timers = FakeLoop()
  let driver: EngineDriver
  let workers = WorkerRegistry()
  let id = WorkerID("web")
  /// A worker that reports its readiness.
  let slow = WorkerID("slow")
  private(set) lazy var launcher = WorkerLauncher(
    driver: driver, workers: workers, timers: timers, host: self,
    machine: .init(maxLaunches: launchesAtOnce) { true })
  let launchesAtOnce: Int
  var obstacle: String?
  /// The launches so far.
  private(set) var launches: [FakeLaunch] = []
  /// Makes the next launch.
  var next: () -> FakeLaunch = { FakeLaunch() }
  /// The events about launches that the engine has got.
  private(set) var events: [String] = []
  /// The calls of the host, in order.
  private(set) var calls: [String] = []
  private(set) var directives: [Directive] = []
  private(set) var answers: [Answer] = []
  private(set) var lines: [String] = []

  init(launchesAtOnce: Int = 4) {
    self.launchesAtOnce = launchesAtOnce
    driver = .forTest(timers, EventNotes())
    driver.connect([self, launcher]) { [unowned self] in execute($0) }
    driver.send(.added(id, WorkerProfile(policy: driver.state.policy)))
  }

  var state: WorkerState? { driver.state.state(of: id) }

  /// Requests a start. Returns the new launch, if there is one.
  @discardableResult
  func start() -> FakeLaunch? {
    let before = launches.count
    request(.start)
    return launches.count > before ? launches.last : nil
  }

  func request(_ verb: Request.Verb) { driver.request(verb, id) { [self] in answers.append($0) } }

  // MARK: engine

  private func execute(_ directive: Directive) {
    directives.append(directive)
    if case .launch(let id) = directive { launcher.launch(id) }
  }
  func handled(_ event: Event, directives: [Directive], engine: Engine, at now: Instant) {
    switch event {
    case .launched: events.append("launched")
    case .launchFailed(_, let reason): events.append("failed: \(reason)")
    default: break
    }
  }

  // MARK: launcher

  func steps(ofLaunching id: WorkerID) -> (any LaunchSteps)? {
    guard id == self.id || id == slow else { return nil }
    let launch = next()
    launches.append(launch)
    return launch
  }
  func obstacle(toLaunching id: WorkerID) -> String? { obstacle }
  func programDidStart(_ id: WorkerID) { calls.append("runs") }
  func didLaunch(_ id: WorkerID) { calls.append("launched") }
  func launchDidFail(_ id: WorkerID) { calls.append("failed") }
  func log(_ id: WorkerID, _ text: String) { lines.append(text) }
}
