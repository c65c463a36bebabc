import Glibc
import Hibernation
import Lifecycle
import Linux
import PolicyFile
import Supervision

@testable import Daemon

/// Workers as the components of `Sense` see them. Their root process is the test's own process, or
/// its parent: no process is started.
final class SenseWorld {
  let timers = FakeLoop()
  let driver: EngineDriver
  let workers = WorkerRegistry()
  private(set) var logged: [String] = []
  private let notes = EventNotes()

  init() { driver = .forTest(timers, notes) }

  var log: (DaemonLog.Priority, String) -> Void {
    { [unowned self] in logged.append("\($0): \($1)") }
  }

  /// Returns the events that the engine has got since the last call.
  func drainEvents() -> [Event] {
    defer { notes.forget() }
    return notes.all
  }

  /// Adds a worker in this state, as if an earlier daemon had left it.
  @discardableResult
  func add(
    _ name: String = "web", _ state: WorkerState = .background,
    _ change: (inout WorkerConfiguration) -> Void = { _ in }
  ) throws -> WorkerUnit {
    let worker = WorkerUnit.forTest(name, change)
    if state != .terminated { try begin(worker) }
    workers[worker.id] = worker
    driver.send(.adopted(worker.id, worker.profile, state))
    _ = drainEvents()
    return worker
  }

  /// Begins a run of the worker with this root process.
  func begin(_ worker: WorkerUnit, as pid: Int32 = getpid()) throws {
    worker.process = try .forTest(ProcessIdentity.current(of: pid), worker.id.name)
  }

  /// Ends the run of the worker.
  func end(_ worker: WorkerUnit) {
    worker.process = nil
    worker.endRun()
  }
}

/// Calls that are answered when a test says so, in any order.
final class Pending<Value> {
  /// Makes the answer that each call gets at once; nil: the test answers.
  var immediate: (() -> Value)?
  private var waiting: [(Value) -> Void] = []
  private(set) var count = 0

  init(immediate: (() -> Value)? = nil) { self.immediate = immediate }

  func add(_ then: @escaping (Value) -> Void) {
    count += 1
    if let immediate { then(immediate()) } else { waiting.append(then) }
  }

  var isEmpty: Bool { waiting.isEmpty }

  /// Answers the call with this index. Returns false if none waits there.
  @discardableResult
  func answer(_ value: Value, at index: Int = 0) -> Bool {
    guard waiting.indices.contains(index) else { return false }
    waiting.remove(at: index)(value)
    return true
  }
}

/// Measurements of footprints, which end when a test says so.
final class PendingFootprints: FootprintSource {
  let pending = Pending<Measurement?>()
  /// The names of the measured workers.
  private(set) var names: [String] = []
  /// What is missing of each measured worker.
  private(set) var missing: [MissingBytes?] = []

  func measure(
    _ process: WorkerProcess, of id: WorkerID, _ missing: MissingBytes?,
    then: @escaping (Measurement?) -> Void
  ) {
    names.append(id.name)
    self.missing.append(missing)
    pending.add(then)
  }
}
