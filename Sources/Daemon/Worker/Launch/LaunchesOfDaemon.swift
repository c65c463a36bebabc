import Glibc
import Lifecycle
import Linux
import Policy
import Supervision

/// The daemon's implementation for `WorkerLauncher`.
final class LaunchesOfDaemon: LaunchHost {
  struct Parts {
    let services: Services
    let driver: EngineDriver
    let workers: WorkerRegistry
    let bootID: String
    /// The daemon's control socket, beside which workers' channels are.
    let socket: String
    /// nil: the configuration declares the workers.
    let program: (any CallersProgram)?
    let recordWriter: WorkerRecordWriter
    let senses: Senses
    let starter: DependencyStarter
    let supervision: WorkerSupervision
    let endedRuns: EndedRuns
    let listening: ListeningSockets
    let planner: LaunchPlanner
    let conversations: WorkerConversations
    let processes: ProcessHolder
    let ends: WorkerEnds
  }

  private let parts: Parts

  init(_ parts: Parts) { self.parts = parts }

  func mechanics(ofLaunching id: WorkerID) -> (any LaunchMechanics)? {
    parts.workers[id].map { LaunchOfWorker($0, parts) }
  }

  /// A process that an earlier daemon has left and this one couldn't adopt. Two workers of one name would share
  /// an image, and each would destroy the other's memory.
  func obstacle(toLaunching id: WorkerID) -> String? {
    guard let record = parts.services.records.record(of: id.name),
      record.life(bootID: parts.bootID) != .hasEnded
    else { return nil }
    return "its process from an earlier daemon still runs and can't be adopted: end it "
      + "with `kill -9 \(record.process.pid)`, or restart the daemon"
  }

  func programRuns(_ id: WorkerID) {
    guard let runtime = parts.workers[id], let process = runtime.process else { return }
    runtime.noteLaunch()
    parts.program?.hasLaunched()
    // With what is known only now.
    parts.recordWriter.save(runtime, state: .launching)
    parts.services.log(.info, "\(id): launched as pid \(process.identity.pid)")
  }

  func hasLaunched(_ id: WorkerID) {
    guard let runtime = parts.workers[id] else { return }
    parts.senses.kernelKills.begin(runtime)
    parts.senses.watchdogs.startWatchdog(of: runtime)
    parts.starter.advance()
    runtime.readiness?.begin()
  }

  func launchHasFailed(_ id: WorkerID) {
    guard let runtime = parts.workers[id] else { return }
    parts.listening.offer(runtime)
    // It isn't declared any more, and only the launch was waited for.
    if parts.driver.state.state(of: id) == nil { parts.supervision.removeWorker(id) }
    if !runtime.isDeclared { parts.endedRuns.forgetOldRuns(after: id) }
  }

  func log(_ id: WorkerID, _ text: String) {
    parts.services.log(.warning, "\(id): \(text)")
  }
}

/// The daemon's implementation for `ProcessHolder`.
final class ProcessesOfDaemon: ProcessHost {
  private let services: Services
  private let driver: EngineDriver
  private let probes: ProbeAsker
  private let kernelKills: KernelKillWatch
  private let sleeps: WorkerSleeps
  private let ends: WorkerEnds

  init(
    services: Services, driver: EngineDriver, probes: ProbeAsker, kernelKills: KernelKillWatch,
    sleeps: WorkerSleeps, ends: WorkerEnds
  ) {
    self.services = services
    self.driver = driver
    self.probes = probes
    self.kernelKills = kernelKills
    self.sleeps = sleeps
    self.ends = ends
  }

  func makeSleep(for runtime: WorkerUnit) { sleeps.makeSleep(for: runtime) }

  func makeReadinessHost(
    for runtime: WorkerUnit, _ process: WorkerProcess,
    refreshMemory: @escaping (WorkerUnit) -> Void
  ) -> any ReadinessHost {
    ReadinessOfWorker(
      worker: WorkerHandle(runtime: runtime, driver: driver, log: services.log), process: process,
      jobs: services.jobs, probes: probes,
      refreshMemory: refreshMemory)
  }

  func rootHasEnded(_ runtime: WorkerUnit) { ends.rootHasEnded(runtime) }

  func isAdopted(_ runtime: WorkerUnit) { kernelKills.adopt(runtime) }

  func open(
    _ refresh: MemoryRefresh, of id: WorkerID, then: @escaping (MemoryRefresh.Outcome) -> Void
  ) {
    let done = services.loopReturn.callback { (opened: MemoryRefresh.Outcome?) in
      if let opened { then(opened) }
    }
    // What can't be opened isn't, until the next time.
    services.mechanics.submit(about: id.name) { done(try? refresh.perform()) }
  }
}

/// What a worker's `ReadinessWatch` gets of the daemon, for one run.
final class ReadinessOfWorker: ReadinessHost {
  private let worker: WorkerHandle
  private let process: WorkerProcess
  private let jobs: LoopJobs
  private let probes: ProbeAsker
  private let refreshMemory: (WorkerUnit) -> Void

  init(
    worker: WorkerHandle, process: WorkerProcess, jobs: LoopJobs, probes: ProbeAsker,
    refreshMemory: @escaping (WorkerUnit) -> Void
  ) {
    self.worker = worker
    self.process = process
    self.jobs = jobs
    self.probes = probes
    self.refreshMemory = refreshMemory
  }

  var isLaunching: Bool {
    worker.runtime?.process === process && worker.state == .launching
  }

  func search(
    _ scan: LogScan, then: @escaping (JobOutcome<Result<Bool, SystemCallError>>) -> Void
  ) {
    jobs.run(about: "log of \(worker.id)", within: .seconds(10)) {
      Result { () throws(SystemCallError) in try scan.look() }
    } then: {
      then($0)
    }
  }

  func findHolder(of port: UInt16, then: @escaping (PortHolder?) -> Void) {
    let (root, session, cgroup) = (process.identity, process.session, process.cgroup)
    jobs.run(about: "port of \(worker.id)", within: .seconds(10)) {
      // What can't be found out doesn't delay the worker.
      try? PortHolder.earlier(than: root, session: session, cgroup: cgroup, at: port)
    } then: { outcome in
      // The daemon has the sockets of `listen`.
      guard case .done(let holder?) = outcome, holder.pid != getpid() else { return then(nil) }
      then(holder)
    }
  }

  func ask(
    _ probe: Policy.Probe, then answer: @escaping (ProbeRunner.Outcome) -> Void
  ) -> () -> Void {
    let question = probes.ask(probe, process, then: answer)
    return { [probes] in probes.drop(question) }
  }

  func isReady() {
    // A wrapper may have executed the real program by now.
    if let runtime = worker.runtime { refreshMemory(runtime) }
    worker.send(.ready(worker.id))
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) { worker.log(priority, text) }
}
