import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision
import TestSupport

@testable import Daemon

/// A run of a worker that is asked for memory, under the real engine. It answers, and is measured,
/// as a test says. Its commands are really executed.
final class ShedWorld {
  /// The worker's channels, if a test creates them.
  let talk: ConversationWorld
  let processes = FakeProcesses()
  /// The loop that watches the command.
  var loop: FakeLoop { talk.timers }
  let source = Source()
  /// The scans for the worker's processes. They find none.
  let scans = Pending<ProcessScan?>(immediate: { nil })
  let sheds: WorkerSheds
  /// The requests over HTTP.
  let questions: FakeQuestions

  /// Measures at once, unless it is slow.
  final class Source: FootprintSource {
    var footprint: ByteCount? = .megabytes(100)
    var isSlow = false
    private(set) var count = 0
    private let pending = Pending<Measurement?>()

    func measure(
      _ process: WorkerProcess, of id: WorkerID, _ missing: MissingBytes?,
      then: @escaping (Measurement?) -> Void
    ) {
      count += 1
      if isSlow { pending.add(then) } else { then(measurement) }
    }

    private var measurement: Measurement? {
      footprint.map { Measurement(footprint: $0, at: .zero, took: .milliseconds(1)) }
    }

    func answer() { while pending.answer(measurement) {} }
  }

  init() throws {
    talk = try ConversationWorld()
    let (adapters, worker, timers) = (talk.adapters, talk.worker, talk.timers)
    let (driver, workers) = (adapters.driver, adapters.workers)
    // The name is unique: only one command of a name is prepared at a time.
    let plan = LaunchPlan(
      name: adapters.scratch.path, command: ["web"], directory: "/", environment: [:],
      logPath: adapters.scratch.path + "/web.log")
    let process = try WorkerProcess.adopt(
      ProcessStat.read(getpid()).identity, plan: plan)
    worker.process = process
    questions = FakeQuestions(
      about: worker, process, timers: timers, adapters.notes, driver, workers)
    sheds = WorkerSheds(
      loop: timers, processes: processes, driver: driver, workers: workers,
      meter: FootprintMeter(
        clock: timers, driver: driver, workers: workers, source: source, log: { _, _ in }),
      scanner: ProcessScanner(timers, launchedAt: { _ in .zero }) { [scans] in
        scans.add($0)
      },
      liveness: questions.supervisor, log: adapters.log)
    driver.send(.footprint(id, .megabytes(100)))
    talk.forget()
  }

  var id: WorkerID { talk.id }
  var timers: FakeLoop { talk.timers }
  var logged: [String] { talk.logged }
  var isAsked: Bool { talk.worker.isAsked }

  func begin(
    _ channel: WorkerConfiguration.Shed?, _ kind: Directive.ShedKind = .memoryWarning
  ) throws -> ShedAttempt {
    talk.worker.configuration.shed = channel
    sheds.beginShed(id, kind, until: timers.now + .seconds(5))
    guard let attempt = talk.worker.shed else { throw TestFailure("nothing was begun") }
    return attempt
  }

  /// The events about requests for memory that the engine has got.
  var events: [Event] {
    talk.events.filter {
      switch $0 {
      case .shedAnswered, .shedFinished: true
      default: false
      }
    }
  }

  var isAnswered: Bool { events == [.shedAnswered(id)] }

  /// Replaces the run that is asked by another one.
  func beginNextRun() throws { talk.worker.process = try .forTest() }

  /// Waits until the command has started.
  func start(_ attempt: ShedAttempt) throws -> Bool {
    try eventually {
      loop.fire()
      return attempt.commandPid != nil
    }
  }

  /// Waits until the command has ended.
  func end(_ attempt: ShedAttempt) throws -> Bool {
    try eventually {
      loop.fire()
      return attempt.commandPid == nil
    }
  }
}
