import Glibc
import Lifecycle
import Linux
import Policy
import Supervision
import TestSupport

@testable import Daemon

/// The steps of one launch, each of which ends when a test says so, and what they have created.
final class FakeLaunch: Launch {
  let steps: [LaunchStep]
  /// The world in which it was begun.
  fileprivate(set) weak var world: LaunchWorld?
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

  var obstacle: String? { world?.obstacle }
  func programDidStart() { world?.calls.append("runs") }
  func didLaunch() { world?.calls.append("launched") }
  func didFail() { world?.calls.append("failed") }
  func log(_ priority: DaemonLog.Priority, _ text: String) { world?.lines.append(text) }
}

/// The real engine and launcher over launches whose outcome a test sets.
final class LaunchWorld: EngineObserver {
  let timers = FakeLoop()
  let driver: EngineDriver
  let workers = WorkerRegistry()
  let id = WorkerID("web")
  /// A worker that reports its readiness.
  let slow = WorkerID("slow")
  private(set) lazy var launcher = WorkerLauncher(
    driver: driver, workers: workers, timers: timers,
    machine: .init(maxLaunches: launchesAtOnce) { true }
  ) { [unowned self] in makeLaunch($0) }
  let launchesAtOnce: Int
  var obstacle: String?
  /// True if there is no worker of the name any more, so that no launch of it is made.
  var isRemoved = false
  /// The launches so far.
  private(set) var launches: [FakeLaunch] = []
  /// Makes the next launch.
  var next: () -> FakeLaunch = { FakeLaunch() }
  /// The events about launches that the engine has got.
  private(set) var events: [String] = []
  /// The calls of launches about their outcomes, in order.
  fileprivate(set) var calls: [String] = []
  private(set) var directives: [Directive] = []
  private(set) var answers: [Answer] = []
  fileprivate(set) var lines: [String] = []

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

  private func makeLaunch(_ id: WorkerID) -> FakeLaunch? {
    guard id == self.id || id == slow, !isRemoved else { return nil }
    let launch = next()
    launch.world = self
    launches.append(launch)
    return launch
  }
}

/// A worker that is being launched. The test's own process represents its process. Jobs run on
/// another thread. Time passes and outcomes are delivered when a test says so.
final class ReadinessWorld {
  let adapters: AdapterWorld
  let loop = FakeLoop()
  let threads = JobPool.forTest
  let processes = FakeProcesses()
  let questions = FakeQuestions.World()
  var worker: WorkerUnit?
  private let holder: ProcessHolder
  private var begun: [ReadinessWatch] = []

  init() throws {
    adapters = try AdapterWorld()
    // The mailbox of the jobs is the first watch of the loop.
    let jobs = try LoopJobs(loop, threads)
    holder = ProcessHolder(
      loop: loop, jobs: jobs, processes: processes, probes: questions,
      sleeps: adapters.sleeps, ends: adapters.ends)
    let worker = try adapters.add("web", .terminated)
    worker.process = try .forTest()
    self.worker = worker
    adapters.driver.request(.start, worker.id) { _ in }
    adapters.notes.forget()
    try writeLog("")
  }

  private var logPath: String { adapters.scratch.path + "/web.log" }
  func writeLog(_ text: String) throws { try adapters.scratch.write("web.log", text) }

  func watch(
    _ rule: ReadinessRule, _ channel: ReadinessChannel? = nil, log: String? = nil
  ) throws -> ReadinessWatch {
    guard let worker else { throw TestFailure("there is no worker") }
    var plan = LaunchPlan(
      name: "web", command: ["web"], directory: "/", environment: [:], logPath: log ?? logPath)
    plan.readinessChannel = channel
    let process = try WorkerProcess.adopt(
      try ProcessIdentity.current(of: getpid()), plan: plan)
    worker.process = process
    return ReadinessWatch(rule, process, of: adapters.handle(worker), heldBy: holder)
  }

  /// Makes a watch, which stays, and begins it.
  @discardableResult
  func begin(
    _ rule: ReadinessRule, _ channel: ReadinessChannel? = nil, log: String? = nil
  ) throws -> ReadinessWatch {
    let watch = try watch(rule, channel, log: log)
    watch.begin()
    begun.append(watch)
    return watch
  }

  var readies: Int { adapters.notes.events.count { $0 == "ready" } }
  var pending: [Duration] { loop.pending }
  var lines: [String] { adapters.logFile.lines(about: "web") }

  /// Delivers the messages of other threads.
  private func deliverMessages() { loop.fire() }

  /// Delivers the outcome of the running job.
  func deliverOutcome() throws {
    let before = pending
    let isBack = try eventually {
      deliverMessages()
      return pending != before
    }
    if !isBack { throw TestFailure("nothing is looked for") }
  }

  func passUntilReady() throws -> Bool {
    try eventually {
      deliverMessages()
      pass()
      return readies == 1
    }
  }

  func reply(_ outcome: ProbeRunner.Outcome) {
    let waiting = questions.answer
    questions.answer = nil
    waiting?(outcome)
  }

  func pass(_ milliseconds: Int = 50) { loop.advance(by: .milliseconds(milliseconds)) }
}
