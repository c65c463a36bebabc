import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision

@testable import Daemon

/// A run of a worker under the real engine: it is asked as a probe asks, and answers, and has traffic, when a test
/// says so.
final class FakeQuestions {
  let timers: FakeTimers
  let worker: WorkerUnit
  let run: RunQuestions
  /// The probes and looks that reach the world.
  let world = World()
  private let notes: EventNotes
  private let driver: EngineDriver
  private let process: WorkerProcess
  let supervisor: LivenessSupervisor
  /// How often a question has ended.
  private(set) var ended = 0

  final class World: ProbeQuestions, ActivityLooking, FootprintSource {
    fileprivate(set) var asked: [Policy.Probe] = []
    fileprivate(set) var dropped = 0
    fileprivate(set) var looks = 0
    fileprivate var answer: ((ProbeRunner.Outcome) -> Void)?
    /// Whether something came in since the last look.
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

    func look(
      at worker: WorkerUnit, _ process: WorkerProcess,
      then: @escaping (ActivityFindings?) -> Void
    ) {
      if losesLooks { return }
      looks += 1
      whenLooking()
      let found = ActivityFindings(
        root: process.identity, cpu: 0, anonymous: 0, hasTraffic: hasTraffic)
      hasTraffic = false
      then(found)
    }

    func collectLatches() {}

    func measure(
      _ process: WorkerProcess, of id: WorkerID, _ missing: MissingBytes?,
      then: @escaping (Measurement?) -> Void
    ) {}
  }

  convenience init(_ timers: FakeTimers = FakeTimers()) throws {
    let (worker, process) = (WorkerUnit.forTest("web"), try WorkerProcess.forTest("web"))
    let (notes, workers) = (EventNotes(), WorkerRegistry())
    let driver = EngineDriver.forTest(timers, notes)
    worker.process = process
    workers[worker.id] = worker
    driver.send(.adopted(worker.id, worker.profile, .background))
    self.init(about: worker, process, timers: timers, notes, driver, workers)
  }

  /// Of a worker that the engine knows.
  init(
    about worker: WorkerUnit, _ process: WorkerProcess, timers: FakeTimers, _ notes: EventNotes,
    _ driver: EngineDriver, _ workers: WorkerRegistry
  ) {
    (self.worker, self.process, self.timers) = (worker, process, timers)
    (self.notes, self.driver) = (notes, driver)
    supervisor = Self.supervisor(timers, driver, workers, world)
    run = supervisor.questions(to: worker, process)
    countEnds()
  }

  /// The real one, whose probes and looks reach this world.
  static func supervisor(
    _ timers: FakeTimers, _ driver: EngineDriver, _ workers: WorkerRegistry, _ world: World
  ) -> LivenessSupervisor {
    LivenessSupervisor(
      timers: timers, driver: driver, probes: world,
      activity: ActivitySampler(
        clock: timers, driver: driver, workers: workers, looks: world,
        meter: FootprintMeter(
          clock: timers, driver: driver, workers: workers, source: world, log: { _, _ in }))
    ) { _ in .zero }
  }

  /// What waits for the end of a question is called once.
  private func countEnds() {
    worker.whenUnasked = { [unowned self] in
      ended += 1
      countEnds()
    }
  }

  /// It runs, although it was reported and is being ended.
  func launch() {
    guard driver.state.state(of: worker.id) != .background else { return }
    driver.send(.exited(worker.id, .exited(0)))
    driver.send(.adopted(worker.id, worker.profile, .background))
  }

  /// Whether what comes in counts as activity.
  func watchTraffic() throws {
    worker.traffic = try TrafficMonitor(latches: nil, ownChannels: [])
  }

  /// While another run has its place, nothing is asked.
  func setMayBeAsked(_ mayBeAsked: Bool) throws {
    worker.process = mayBeAsked ? process : try .forTest("web")
  }

  var isAnswerAwaited: Bool { world.answer != nil }

  func answer(_ outcome: ProbeRunner.Outcome) { forgetAnswer()?(outcome) }

  /// The answer to the question that is out doesn't come; perhaps later.
  func forgetAnswer() -> ((ProbeRunner.Outcome) -> Void)? {
    defer { world.answer = nil }
    return world.answer
  }

  /// How often it was found to be in use.
  var active: Int {
    notes.all.count { if case .activity = $0 { true } else { false } }
  }

  /// The reasons why it was reported.
  var complaints: [String] {
    notes.all.compactMap { if case .unhealthy(_, let why) = $0 { why } else { nil } }
  }
}
