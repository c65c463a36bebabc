import Policy
import Supervision

@testable import Daemon

/// A run of a worker under the real engine. It is asked as a probe asks. It answers, and has
/// traffic, when a test says so.
final class FakeQuestions {
  let timers: FakeLoop
  let worker: WorkerUnit
  let question: QuietQuestion
  /// The probes and samples that reach the fakes.
  let world = World()
  private let notes: EventNotes
  private let driver: EngineDriver
  private let process: WorkerProcess
  let supervisor: LivenessSupervisor
  /// The number of questions that have ended.
  private(set) var ended = 0

  final class World: ProbeQuestions, ActivitySource {
    fileprivate(set) var asked: [Policy.Probe] = []
    fileprivate(set) var dropped = 0
    fileprivate(set) var looks = 0
    var answer: ((ProbeRunner.Outcome) -> Void)?
    /// Whether input has arrived since the last sample.
    var hasTraffic = false
    var losesLooks = false
    var whenAsked: () -> Void = {}
    var whenLooking: () -> Void = {}

    func put(
      _ probe: Policy.Probe, to process: WorkerProcess,
      then answer: @escaping (ProbeRunner.Outcome) -> Void
    ) -> () -> Void {
      asked.append(probe)
      self.answer = answer
      whenAsked()
      return { [self] in
        self.answer = nil
        dropped += 1
      }
    }

    func sample(
      _ worker: WorkerUnit, _ process: WorkerProcess, then: @escaping (ActivityReading?) -> Void
    ) {
      if losesLooks { return }
      looks += 1
      whenLooking()
      let reading = ActivityReading(
        root: process.identity, cpu: 0, anonymous: 0, hasTraffic: hasTraffic)
      hasTraffic = false
      then(reading)
    }

    func collectLatches() {}
  }

  convenience init(_ timers: FakeLoop = FakeLoop()) throws {
    let (worker, process) = (WorkerUnit.forTest("web"), try WorkerProcess.forTest("web"))
    let (notes, workers) = (EventNotes(), WorkerRegistry())
    let driver = EngineDriver.forTest(timers, notes)
    worker.process = process
    workers[worker.id] = worker
    driver.send(.adopted(worker.id, worker.profile, .background))
    self.init(about: worker, process, timers: timers, notes, driver, workers)
  }

  /// For a worker that the engine knows.
  init(
    about worker: WorkerUnit, _ process: WorkerProcess, timers: FakeLoop, _ notes: EventNotes,
    _ driver: EngineDriver, _ workers: WorkerRegistry
  ) {
    (self.worker, self.process, self.timers) = (worker, process, timers)
    (self.notes, self.driver) = (notes, driver)
    supervisor = Self.supervisor(timers, driver, workers, world)
    question = QuietQuestion(to: worker, process, by: supervisor)
    countEnds()
  }

  /// Makes a real supervisor, whose samples reach these fakes, and its probes, unless a test has
  /// others.
  static func supervisor(
    _ timers: FakeLoop, _ driver: EngineDriver, _ workers: WorkerRegistry, _ world: World,
    probes: (any ProbeQuestions)? = nil
  ) -> LivenessSupervisor {
    LivenessSupervisor(
      timers: timers, driver: driver, probes: probes ?? world,
      activity: ActivitySampler(
        clock: timers, driver: driver, workers: workers, source: world,
        meter: FootprintMeter(
          clock: timers, driver: driver, workers: workers, source: PendingFootprints(),
          log: { _, _ in }))
    ) { _ in .zero }
  }

  /// Counts the ends of questions: each one calls `actionAfterQuestions` once.
  private func countEnds() {
    worker.actionAfterQuestions = { [unowned self] in
      ended += 1
      countEnds()
    }
  }

  /// Makes the worker run again, although it was reported as unhealthy and is being ended.
  func launch() {
    guard driver.state.state(of: worker.id) != .background else { return }
    driver.send(.exited(worker.id, .exited(0)))
    driver.send(.adopted(worker.id, worker.profile, .background))
  }

  /// Makes the worker's input count as activity.
  func watchTraffic() throws {
    worker.traffic = try TrafficMonitor(latches: nil, daemonSockets: [])
  }

  /// While another run has replaced this one, nothing is asked.
  func setMayBeAsked(_ mayBeAsked: Bool) throws {
    worker.process = mayBeAsked ? process : try .forTest("web")
  }

  var isAnswerAwaited: Bool { world.answer != nil }

  func answer(_ outcome: ProbeRunner.Outcome) { forgetAnswer()?(outcome) }

  /// Takes the answer to the open question, which isn't given, or is given later.
  func forgetAnswer() -> ((ProbeRunner.Outcome) -> Void)? {
    defer { world.answer = nil }
    return world.answer
  }

  /// How often the worker was reported as active.
  var active: Int {
    notes.all.count { if case .activity = $0 { true } else { false } }
  }

  /// The reasons for which the worker was reported as unhealthy.
  var complaints: [String] {
    notes.all.compactMap { if case .unhealthy(_, let reason) = $0 { reason } else { nil } }
  }
}
