import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

@testable import Daemon

// Workers without a program.

extension WorkerUnit {
  static func forTest(
    _ name: String, mode: ForegroundRules.Mode = .manual, isDeclared: Bool = true,
    _ change: (inout WorkerConfiguration) -> Void = { _ in }
  ) -> WorkerUnit {
    WorkerUnit(
      configuration: .forTest(name, mode: mode, change), environment: [:], isDeclared: isDeclared)
  }

  /// Ends a run that no loop watches.
  func endRun() { endRun(FakeLoop()) }
}

extension WorkerConfiguration {
  static func forTest(
    _ name: String, mode: ForegroundRules.Mode = .manual,
    _ change: (inout WorkerConfiguration) -> Void = { _ in }
  ) -> WorkerConfiguration {
    var policy = LifecyclePolicy(name: "test")
    policy.foreground.mode = mode
    var configuration = WorkerConfiguration(
      name: name, command: [name, "--serve"], directory: "/", importance: 0, policy: policy)
    change(&configuration)
    return configuration
  }
}

extension WorkerProcess {
  /// A worker's process that is represented by the test's own process.
  static func forTest(
    _ name: String = "web", in cgroup: WorkerCgroup? = nil
  ) throws -> WorkerProcess {
    try forTest(ProcessStat.read(getpid()).identity, name, in: cgroup)
  }

  static func forTest(
    _ identity: ProcessIdentity, _ name: String = "web", in cgroup: WorkerCgroup? = nil
  ) throws -> WorkerProcess {
    let plan = LaunchPlan(
      name: name, command: [name, "--serve"], directory: "/", environment: [:], cgroup: cgroup,
      logPath: "/logs/\(name).log")
    return try adopt(identity, plan: plan)
  }
}

/// Values that a component has reported to a test, in order.
final class Recorded<Value> { var all: [Value] = [] }

/// Records the events.
final class EventNotes: EngineObserver {
  /// The names of the events.
  private(set) var events: [String] = []
  private(set) var all: [Event] = []

  /// The answers of the engine.
  private(set) var answers: [Answer] = []

  func forget() { (events, all) = ([], []) }

  /// Called when the engine has handled all events so far.
  var whenQuiet: () -> Void = {}

  /// Called before the answers to an event are given.
  var whenHandled: (Event) -> Void = { _ in }

  func handled(_ event: Event, directives: [Directive], engine: Engine, at now: Instant) {
    events.append(String("\(event)".prefix { $0 != "(" }))
    all.append(event)
    answers += directives.compactMap { if case .answer(_, let answer) = $0 { answer } else { nil } }
    whenHandled(event)
  }
}

extension EngineDriver {
  /// A driver with fake time, and with records that are on the disk at once.
  static func forTest(
    _ timers: FakeLoop, _ notes: EventNotes, _ records: FakeRecords = FakeRecords(),
    policy: LifecyclePolicy = LifecyclePolicy(name: "test")
  ) -> EngineDriver {
    let driver = EngineDriver(
      Engine(policy: policy), clock: timers, replies: RequestReplies(records, timers: timers))
    driver.connect([notes], whenQuiet: { notes.whenQuiet() })
    return driver
  }

  /// Sends a request to the engine, as `WorkerRequests` does.
  func request(
    _ verb: Request.Verb, _ worker: WorkerID, then answer: @escaping (Answer) -> Void
  ) { send(.request(Request(id: replies.await(answer), verb: verb, worker: worker))) }
}

/// A wrapper's program that no process runs. It records its launches and its changes.
final class TestProgram: CallersProgram {
  let inheritance = Inheritance(firstArgument: 0)
  let logPath: String? = nil
  let wakes: Int
  var host: String? { "nvim" }
  var directory: String? { "/home/me/shop" }
  private(set) var changes: [WorkerState] = []
  private(set) var launches = 0

  init(wakes: Int = 0) { self.wakes = wakes }

  func didLaunch() { launches += 1 }
  func didEnd(_ status: Lifecycle.ExitStatus) {}
  func didChange(_ transition: Transition) { changes.append(transition.to) }
}
