import Lifecycle
import Linux
import Policy
import Supervision

@testable import Daemon

/// What an earlier daemon has left, as a test says.
final class FakeSurvivorHost: SurvivorHost {
  let workers = WorkerRegistry()
  var records: [WorkerRecord] = []
  var failures: [WorkerRecordError] = []
  var unusable: SystemCallError?
  var forbidsStrangers = false
  /// Workers whose processes have ended.
  var ended: Set<String> = []
  /// Why one can't be taken over.
  var refusals: [String: String] = [:]
  var rests: [String: SurvivorRest] = [:]
  /// What was done, in order.
  private(set) var calls: [String] = []
  private(set) var lines: [String] = []
  private var watches: [String: (SurvivorWatch?) -> Void] = [:]
  private var recoveries: [String: (SurvivorRecovery?) -> Void] = [:]

  private struct CantBeTaken: Error, CustomStringConvertible { let description: String }

  func loadRecords() throws(WorkerRecordError) -> (
    records: [WorkerRecord], failures: [WorkerRecordError]
  ) {
    if let unusable { throw .unusable(unusable) }
    return (records, failures)
  }
  func life(of record: WorkerRecord) -> ProcessLife {
    ended.contains(record.name) ? .hasEnded : .lives
  }
  func forget(_ record: WorkerRecord) { calls.append("forget \(record.name)") }
  func removeOrphans() { calls.append("remove orphans") }
  func takeOver(_ record: WorkerRecord) throws {
    if let refusal = refusals[record.name] { throw CantBeTaken(description: refusal) }
    let id = WorkerID(record.name)
    workers[id] = workers[id] ?? .forTest(record.name, isDeclared: false)
    calls.append("take over \(id)")
  }
  func rest(of record: WorkerRecord) -> SurvivorRest { rests[record.name] ?? .inDoubt }
  func leaveAsleep(_ record: WorkerRecord, with image: ImageOnDisk?) {
    calls.append("leave \(record.name) asleep, \(image?.path ?? "no image")")
  }
  func staysAsleep(_ id: WorkerID, with image: ImageOnDisk?) {
    calls.append("\(id) stays asleep, \(image?.path ?? "no image")")
  }
  func watchInputs(of record: WorkerRecord, then: @escaping (SurvivorWatch?) -> Void) {
    calls.append("watch \(record.name)")
    watches[record.name] = then
  }
  func recover(_ record: WorkerRecord, then: @escaping (SurvivorRecovery?) -> Void) {
    calls.append("recover \(record.name)")
    recoveries[record.name] = then
  }
  func killUnverified(_ id: WorkerID) { calls.append("kill \(id)") }
  func save(_ id: WorkerID, _ state: WorkerState) { calls.append("save \(id) \(state)") }
  func isBack(_ id: WorkerID) { calls.append("\(id) is back") }
  func wakeForWhatWaits(_ id: WorkerID) { calls.append("look for \(id)'s inputs") }
  func log(_ priority: DaemonLog.Priority, _ text: String) { lines.append(text) }

  // MARK: what a test does

  func watched(_ name: String, _ watch: SurvivorWatch?) {
    watches.removeValue(forKey: name)?(watch)
  }
  func recovered(_ name: String, _ recovery: SurvivorRecovery?) {
    recoveries.removeValue(forKey: name)?(recovery)
  }
}

/// A `SurvivorAdoption` over them.
struct SurvivorWorld {
  let host = FakeSurvivorHost()
  let timers = FakeTimers()
  let notes = EventNotes()
  let driver: EngineDriver
  let returning = ReturningWorkers()
  let adoption: SurvivorAdoption

  init() {
    driver = .forTest(timers, notes)
    adoption = SurvivorAdoption(
      driver: driver, workers: host.workers, returning: returning, timers: timers, host: host)
  }

  /// An earlier daemon has left it, in this state, with the test's own process.
  func leave(
    _ name: String, _ state: String = "background",
    _ change: (inout WorkerRecord) -> Void = { _ in }
  ) {
    var record = WorkerRecord(
      name: name, process: ProcessIdentity(pid: 4711, startTime: 1), session: 4711, bootID: "boot",
      command: [name], directory: "/", logPath: "/logs/\(name).log", state: state)
    change(&record)
    host.records.append(record)
  }

  /// The configuration has it.
  func declare(_ runtime: WorkerUnit) {
    host.workers[runtime.id] = runtime
    driver.send(.added(runtime.id, runtime.profile))
  }

  func state(of name: String) -> WorkerState? { driver.state.state(of: WorkerID(name)) }
}
