import Lifecycle
import Policy

@testable import Daemon

/// Workers that start and end as a test says.
final class FakeRestartHost: RestartHost {
  let timers = FakeTimers()
  let files = FakeStateFiles()
  private let began: Instant
  var isClosing = false
  var pressure = PressureLevel.normal
  var terms: [String: RestartTerms] = [:]
  var states: [String: WorkerState] = [:]
  private var lastExits: [String: ExitStatus] = [:]
  private(set) var started: [(name: String, after: Duration)] = []
  private var answers: [String: (Answer) -> Void] = [:]
  private(set) var lines: [String] = []

  init() { began = timers.now }

  /// The largest footprint for which there is room at normal pressure, and at all.
  var free = ByteCount.gigabytes(1)
  var budget = ByteCount.gigabytes(2)

  func room(for footprint: ByteCount) -> MemoryRoom {
    if footprint > budget { return .never }
    return pressure == .normal && footprint <= free ? .enough : .notNow
  }
  func state(of id: WorkerID) -> WorkerState? { states[id.name] }
  func lastExit(of id: WorkerID) -> ExitStatus? { lastExits[id.name] }
  func terms(of id: WorkerID) -> RestartTerms? { terms[id.name] }
  func start(_ id: WorkerID, then answer: @escaping (Answer) -> Void) {
    started.append((id.name, timers.now - began))
    answers[id.name] = answer
  }
  func log(_ priority: DaemonLog.Priority, _ text: String) { lines.append(text) }

  func answer(_ name: String, _ code: Answer.Code, _ text: String) {
    answers.removeValue(forKey: name)?(Answer(code, text))
  }

  var names: [String] { started.map(\.name) }
  var stopped: String? { files.texts["/state/stopped"] }

  func transit(_ name: String, to state: WorkerState, _ cause: Cause) -> Transition {
    let before = states[name] ?? .terminated
    states[name] = state
    if case .exited(let status) = cause { lastExits[name] = status }
    return Transition(
      worker: WorkerID(name), from: before, to: state, cause: cause, at: timers.now)
  }
}

/// A supervisor, and workers that start and end as a test says.
struct RestartWorld {
  let host = FakeRestartHost()
  let supervisor: RestartSupervisor

  init() {
    supervisor = RestartSupervisor(
      timers: host.timers, wallClock: { 1_795_341_600_000_000_000 },
      stopped: StoppedByPerson(path: "/state/stopped", files: host.files), host: host)
  }

  static let failure = Cause.exited(.exited(4))
  static let rules = RestartRules(.always, giveUp: nil)

  func add(_ name: String = "web", _ rules: RestartRules = rules, importance: Int = 0) {
    host.terms[name] = RestartTerms(rules: rules, importance: importance)
    host.states[name] = .terminated
    supervisor.add(WorkerID(name), exits: [])
  }

  func launch(_ name: String = "web", for time: Duration = .zero) {
    supervisor.record(host.transit(name, to: .launching, .requested(.start)))
    supervisor.record(host.transit(name, to: .background, .becameReady))
    host.timers.advance(by: time)
  }

  func end(_ name: String = "web", _ cause: Cause = failure) {
    supervisor.record(host.transit(name, to: .terminated, cause))
  }

  func run(_ name: String = "web", for time: Duration = .zero, _ cause: Cause = failure) {
    launch(name, for: time)
    end(name, cause)
  }

  /// Until the restart that is planned; nil: there is none.
  func delay(of name: String = "web") -> Duration? {
    guard case .backingOff(let due, _) = supervisor.plan(of: WorkerID(name)) else { return nil }
    return due - host.timers.now
  }
}
