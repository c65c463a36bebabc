import Lifecycle
import Linux
import Policy
import Supervision

/// What `WorkerLauncher` gets of the daemon.
final class LaunchesOfDaemon: LaunchHost {
  private unowned let daemon: Daemon

  init(_ daemon: Daemon) { self.daemon = daemon }

  func mechanics(ofLaunching id: WorkerID) -> (any LaunchMechanics)? {
    daemon.workers[id].map { LaunchOfWorker(daemon, $0) }
  }

  /// A process that an earlier daemon has left and we couldn't take over. Two of one name would share
  /// an image, and lose their memory to each other.
  func obstacle(toLaunching id: WorkerID) -> String? {
    guard let record = daemon.records.record(of: id.name), record.isAlive(bootID: daemon.bootID)
    else { return nil }
    return "an earlier daemon's process of it is still there and couldn't be adopted: end it "
      + "with `kill -9 \(record.process.pid)`, or start the daemon again"
  }

  func programRuns(_ id: WorkerID) {
    guard let runtime = daemon.workers[id], let process = runtime.process else { return }
    runtime.noteLaunch()
    daemon.role.program?.hasLaunched()
    // From its first moment on: a daemon that dies now must leave it to the next.
    daemon.saveRecord(runtime, state: .launching)
    daemon.log(.info, "\(id): launched as pid \(process.identity.pid)")
  }

  func hasLaunched(_ id: WorkerID) {
    guard let runtime = daemon.workers[id] else { return }
    daemon.senses.kernelKills.begin(runtime)
    daemon.senses.watchdogs.startWatchdog(of: runtime)
    daemon.dependencyStarter.advance()
    runtime.readiness?.begin()
  }

  func launchHasFailed(_ id: WorkerID) {
    guard let runtime = daemon.workers[id] else { return }
    daemon.listening.offer(runtime)
    // No longer declared: only the launch was waited for.
    if daemon.engine.state(of: id) == nil { daemon.supervision.removeWorker(id) }
    if !runtime.isDeclared { daemon.endedRuns.forgetOldRuns(after: id) }
  }

  func log(_ id: WorkerID, _ text: String) { daemon.log(.warning, "\(id): \(text)") }
}

/// What `ProcessHolder` gets of the daemon.
final class ProcessesOfDaemon: ProcessHost {
  private unowned let daemon: Daemon

  init(_ daemon: Daemon) { self.daemon = daemon }

  func makeSleep(for runtime: WorkerUnit) { daemon.sleeps.makeSleep(for: runtime) }

  func makeReadinessHost(
    for runtime: WorkerUnit, _ process: WorkerProcess
  ) -> any ReadinessHost {
    ReadinessOfWorker(daemon, runtime, process)
  }

  func rootHasEnded(_ runtime: WorkerUnit) { daemon.ends.rootHasEnded(runtime) }

  func open(
    _ refresh: MemoryRefresh, of id: WorkerID, then: @escaping (MemoryRefresh.Outcome) -> Void
  ) {
    let done = daemon.loopReturn.callback { (opened: MemoryRefresh.Outcome?) in
      if let opened { then(opened) }
    }
    // What can't be opened isn't, until the next time.
    daemon.mechanics.submit(about: id.name) { done(try? refresh.perform()) }
  }
}

/// What a worker's `ReadinessWatch` gets of the daemon, for one run.
private final class ReadinessOfWorker: ReadinessHost {
  private unowned let daemon: Daemon
  private weak var runtime: WorkerUnit?
  private let process: WorkerProcess
  private let id: WorkerID

  init(_ daemon: Daemon, _ runtime: WorkerUnit, _ process: WorkerProcess) {
    self.daemon = daemon
    self.runtime = runtime
    self.process = process
    id = runtime.id
  }

  var isLaunching: Bool {
    runtime?.process === process && daemon.engine.state(of: id) == .launching
  }

  func search(
    _ scan: LogScan, then: @escaping (JobOutcome<Result<Bool, SystemCallError>>) -> Void
  ) {
    daemon.jobs.run(about: "log of \(id)", within: .seconds(10)) {
      Result { () throws(SystemCallError) in try scan.look() }
    } then: {
      then($0)
    }
  }

  func ask(
    _ probe: Policy.Probe, then answer: @escaping (ProbeRunner.Outcome) -> Void
  ) -> () -> Void {
    let question = daemon.senses.probes.ask(probe, process, then: answer)
    return { [unowned daemon] in daemon.senses.probes.drop(question) }
  }

  func isReady() {
    // A wrapper may have executed the real program by now.
    if let runtime { daemon.processHolder.refreshMemory(of: runtime) }
    daemon.driver.send(.ready(id))
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) {
    daemon.log(priority, "\(id): \(text)")
  }
}

/// What `FirstMoments` gets of the daemon.
final class FirstMomentsOfDaemon: FirstMomentsHost {
  private unowned let daemon: Daemon

  init(_ daemon: Daemon) { self.daemon = daemon }

  func saysWhenReady(_ id: WorkerID) -> Bool {
    daemon.workers[id]?.configuration.readiness != nil
  }

  func isAlive(_ id: WorkerID) -> Bool { daemon.isAlive(id) }
  func instance(of id: WorkerID) -> AnyObject? { daemon.workers[id] }
  func hasExited(_ id: WorkerID) -> Bool { daemon.workers[id]?.hasExited ?? true }
  func runs(_ id: WorkerID) -> Bool { daemon.engine.state(of: id)?.runs == true }

  func look(at id: WorkerID, then: @escaping (RestLook?) -> Void) -> Bool {
    guard let process = daemon.workers[id]?.process else { return false }
    daemon.senses.scanner.withTree(of: process) { then($0.map(RestLook.init)) }
    return true
  }
}

/// What a worker's `DescriptorStoring` gets of the daemon.
final class StoringOfWorker: StoringHost {
  private unowned let daemon: Daemon
  private weak var runtime: WorkerUnit?
  private let id: WorkerID

  init(_ daemon: Daemon, _ runtime: WorkerUnit) {
    self.daemon = daemon
    self.runtime = runtime
    id = runtime.id
  }

  var limit: Int { runtime?.configuration.fdstore ?? 0 }

  var isDown: Bool {
    guard let runtime else { return true }
    return runtime.process == nil && !daemon.launcher.isLaunching(id)
      && daemon.engine.state(of: id) ?? .terminated == .terminated
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) {
    daemon.log(priority, "\(id): \(text)")
  }
}
