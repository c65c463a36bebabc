import Lifecycle
import PolicyFile
import Supervision

@testable import Daemon
@testable import Hibernation

/// An `AdapterWorld` in which an earlier daemon has left workers. Operations on their memory have
/// the outcomes that a test sets.
struct SurvivorWorld {
  let memory = FakeMemory()
  let base: AdapterWorld

  init() throws { base = try AdapterWorld(memory: memory) }

  var driver: EngineDriver { base.driver }
  var workers: WorkerRegistry { base.workers }
  var returning: ReturningWorkers { base.returning }
  var events: [String] { base.notes.events }

  func adopt() { base.survivors.adoptSurvivors() }

  /// Saves the record of a worker that an earlier daemon has left in this state.
  func leave(
    _ name: String, _ state: WorkerState = .background,
    _ change: (inout WorkerRecord) -> Void = { _ in }
  ) throws {
    try base.services.records.store.save(try base.record(name, state, change))
  }

  /// Adds the worker as if the configuration declared it.
  func declare(_ worker: WorkerUnit) {
    workers[worker.id] = worker
    base.restarts.add(worker.id, exits: [])
    driver.send(.added(worker.id, worker.profile))
  }

  func recovered(_ name: String = "web", _ restored: UInt64 = 0) {
    memory.endRecovery(
      of: name,
      RecoveryOutcome(result: .success(ResumeSummary(restored: restored, duration: .zero))))
  }

  func failed(
    _ aftermath: HibernationError.Aftermath, _ name: String = "web",
    leaving image: ImageOnDisk? = nil
  ) {
    let error = HibernationError(.reading, "it is busy", aftermath: aftermath)
    memory.endRecovery(of: name, RecoveryOutcome(result: .failure(error), image: image))
  }

  func state(of name: String = "web") -> WorkerState? { driver.state.state(of: WorkerID(name)) }

  /// The record that the next daemon would read.
  func recorded(_ name: String = "web") -> WorkerRecord? { base.services.records.record(of: name) }
}

extension AdapterWorld {
  /// Makes a `SurvivorAdoption` as the daemon does.
  var survivors: SurvivorAdoption {
    SurvivorAdoption(
      timers: timers, recordWriter: recordWriter,
      processes: fakeMemory == nil ? services.processes : strangers,
      configuration: ConfigurationInForce(DaemonConfiguration()), declared: declared,
      conversations: conversations, ends: ends, holder: processes)
  }
}
