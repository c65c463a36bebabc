import Control
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision
import TestSupport

@testable import Daemon

/// Processes of another manager, as a test says. The test's own process stands for each.
final class FakeExternalHost: ExternalHost {
  typealias Examination = JobOutcome<Result<ExternalProcess, AdoptionRefusal>>

  let timers = FakeTimers()
  let notes = EventNotes()
  let workers = WorkerRegistry()
  let driver: EngineDriver
  var isClosing = false
  var wrapped: Set<String> = []
  var owners: [Int32: String] = [:]
  var attachRefusal: String?
  var successor: Successor?
  private(set) var calls: [String] = []
  private(set) var lines: [String] = []
  private var examinations: [(Examination) -> Void] = []
  private var wakes: [(Answer) -> Void] = []

  init() { driver = .forTest(timers, notes) }

  func isAlive(_ id: WorkerID) -> Bool { driver.state.state(of: id)?.isAlive == true }
  func isWrapped(_ id: WorkerID) -> Bool { wrapped.contains(id.name) }
  func owner(of pid: Int32) -> WorkerID? { owners[pid].map { WorkerID($0) } }
  func examine(
    _ wanted: AdoptionSpecification, as name: String, within limit: Duration,
    then: @escaping (Examination) -> Void
  ) {
    calls.append("examine \(wanted.pid ?? 0) as \(name)")
    examinations.append(then)
  }
  func attach(_ found: ExternalProcess, to runtime: WorkerUnit) throws {
    if let attachRefusal { throw TestFailure(attachRefusal) }
    calls.append("attach \(runtime.id)")
  }
  func wasAdded(_ id: WorkerID) { calls.append("added \(id)") }
  func wake(_ id: WorkerID, then answer: @escaping (Answer) -> Void) {
    calls.append("wake \(id)")
    wakes.append(answer)
  }
  func letGo(of runtime: WorkerUnit) { calls.append("let go of \(runtime.id)") }
  func remove(_ id: WorkerID) {
    calls.append("remove \(id)")
    workers[id] = nil
  }
  func introduce(_ configuration: WorkerConfiguration) {
    calls.append("introduce \(configuration.name)")
  }
  func attachSuccessor(to runtime: WorkerUnit) -> Successor? {
    calls.append("look for a successor")
    return successor
  }
  func save(_ runtime: WorkerUnit, _ state: WorkerState) {
    calls.append("save \(runtime.id) \(state)")
  }
  func wasReleased(_ process: ProcessIdentity, from rule: String) {
    calls.append("released from \(rule)")
  }
  func log(_ priority: DaemonLog.Priority, _ text: String) { lines.append(text) }

  // MARK: what a test does

  func examined(_ outcome: Examination) { examinations.removeFirst()(outcome) }
  func woken(_ code: Answer.Code = .done, _ text: String = "") {
    wakes.removeFirst()(Answer(code, text))
  }
}
