import Lifecycle
import Linux
import PolicyFile
import Supervision

/// The functions of the daemon that `ProcessHolder` uses.
protocol ProcessHost: AnyObject {
  func makeSleep(for runtime: WorkerUnit)
  func rootHasEnded(_ runtime: WorkerUnit)
  /// An earlier daemon, or another supervisor, has begun its run.
  func isAdopted(_ runtime: WorkerUnit)
  /// On another thread; `then` is called on the loop where its memories could be opened.
  func open(
    _ refresh: MemoryRefresh, of id: WorkerID, then: @escaping (MemoryRefresh.Outcome) -> Void)
}

/// Holds running processes, launched and adopted ones. Belongs to the loop's thread.
final class ProcessHolder {
  let loop: any Timers & DescriptorWatches
  let jobs: LoopJobs
  let processes: any Processes
  let probes: any ProbeQuestions
  private let driver: EngineDriver
  private let log: DaemonLog
  private let host: any ProcessHost

  init(
    loop: any Timers & DescriptorWatches, jobs: LoopJobs, processes: any Processes,
    probes: any ProbeQuestions, driver: EngineDriver, log: DaemonLog, host: any ProcessHost
  ) {
    self.loop = loop
    self.jobs = jobs
    self.processes = processes
    self.probes = probes
    self.driver = driver
    self.log = log
    self.host = host
  }

  /// Begins a run, and watches for its end.
  func attach(_ process: WorkerProcess, to runtime: WorkerUnit) throws(SystemCallError) {
    runtime.process = process
    if runtime.sleep == nil { host.makeSleep(for: runtime) }
    runtime.readiness?.end()
    runtime.readiness = runtime.configuration.readiness.map {
      ReadinessWatch(
        ReadinessRule($0), process,
        of: WorkerHandle(runtime: runtime, driver: driver, log: log), heldBy: self)
    }
    runtime.exitWatch = try loop.whenReadable(process.pidfd) { [unowned self, weak runtime] in
      if let runtime { host.rootHasEnded(runtime) }
    }
  }

  /// Continues a run that an earlier daemon, or another supervisor, has begun.
  func adopt(_ process: WorkerProcess, as runtime: WorkerUnit) throws(SystemCallError) {
    try attach(process, to: runtime)
    host.isAdopted(runtime)
  }

  /// Opens the memory of all its processes again. A process that can't be opened now is tried again before the
  /// suspension.
  func refreshMemory(of runtime: WorkerUnit) {
    guard let process = runtime.process else { return }
    host.open(process.memoryRefresh, of: runtime.id) { [weak runtime] opened in
      if let now = runtime?.process, now.identity == process.identity { now.adopt(opened) }
    }
  }
}
