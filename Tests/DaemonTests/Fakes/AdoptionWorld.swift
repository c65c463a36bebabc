import Control
import Glibc
import Lifecycle
import Linux
import PolicyFile
import Supervision

@testable import Daemon
@testable import Hibernation

/// An `AdapterWorld` that adopts processes of another supervisor, or of an earlier daemon. A test
/// says what is known about them, and which outcomes operations on their memory have. The test's
/// own process represents each of them.
struct AdoptionWorld {
  let memory = FakeMemory()
  let base: AdapterWorld

  init() throws { base = try AdapterWorld(memory: memory) }

  var externals: ExternalAdoption { base.externals }
  var looks: FakeWorkerProcesses { base.workerProcesses }
  var driver: EngineDriver { base.driver }
  var workers: WorkerRegistry { base.workers }
  var returning: ReturningWorkers { base.returning }
  var events: [String] { base.notes.events }

  func state(of name: String = "web") -> WorkerState? { driver.state.state(of: WorkerID(name)) }

  /// The record that the next daemon would read.
  func recorded(_ name: String = "web") -> WorkerRecord? { base.services.records.record(of: name) }

  /// The number of log lines that contain the text.
  func lines(_ text: String) -> Int {
    base.logged.split(separator: "\n").count { $0.contains(text) }
  }
  func isLogged(_ text: String) -> Bool { base.logged.contains(text) }

  // MARK: processes of another supervisor

  /// A pid that no process has.
  static let pid: Int32 = 1 << 22 + 100

  static func stat(_ pid: Int32 = pid) throws -> ProcessStat {
    var stat = try ProcessStat.read(getpid())
    stat.pid = pid
    return stat
  }

  static func process(in cgroup: WorkerCgroup? = nil) throws -> ExternalProcess {
    let root = try stat()
    return ExternalProcess(root: root, tree: ProcessTree(processes: [root]), cgroup: cgroup)
  }

  func ask(
    _ name: String? = "web", _ wanted: AdoptionSpecification? = AdoptionSpecification(pid: 100)
  ) -> ControlWorld.Heard {
    let heard = ControlWorld.Heard()
    let request = ControlRequest(id: 7, verb: .adopt, worker: name, adoption: wanted)
    externals.adopt(ControlCall(request: request) { heard.responses.append($0) })
    return heard
  }

  func askRelease(_ name: String? = "web") -> ControlWorld.Heard {
    let heard = ControlWorld.Heard()
    let request = ControlRequest(id: 8, verb: .release, worker: name)
    externals.release(ControlCall(request: request) { heard.responses.append($0) })
    return heard
  }

  func examined(_ process: ExternalProcess? = nil) throws {
    looks.answer(examination: .done(.success(try process ?? Self.process())))
  }

  /// Moves the worker to this state in the engine.
  func move(_ name: String = "web", to state: WorkerState) {
    let id = WorkerID(name)
    driver.send(.exited(id, .unknown))
    if let worker = workers[id] { driver.send(.adopted(id, worker.profile, state)) }
  }

  // MARK: workers of an earlier daemon

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
