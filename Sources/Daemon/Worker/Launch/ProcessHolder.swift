import Lifecycle
import Linux
import PolicyFile
import Supervision

/// Connects running processes, both launched and adopted ones, with their workers. Belongs to the
/// loop's thread.
final class ProcessHolder {
  let loop: any Timers & DescriptorWatches
  let jobs: LoopJobs
  let processes: any Processes
  let probes: any ProbeQuestions
  private let sleeps: WorkerSleeps
  private let ends: WorkerEnds

  init(
    loop: any Timers & DescriptorWatches, jobs: LoopJobs, processes: any Processes,
    probes: any ProbeQuestions, sleeps: WorkerSleeps, ends: WorkerEnds
  ) {
    self.loop = loop
    self.jobs = jobs
    self.processes = processes
    self.probes = probes
    self.sleeps = sleeps
    self.ends = ends
  }

  /// Begins a run with this process, and watches for its end.
  func attach(_ process: WorkerProcess, to runtime: WorkerUnit) throws(SystemCallError) {
    runtime.process = process
    if runtime.sleep == nil { sleeps.makeSleep(for: runtime) }
    runtime.readiness?.end()
    runtime.readiness = runtime.configuration.readiness.map {
      ReadinessWatch(
        ReadinessRule($0), process,
        of: WorkerHandle(runtime: runtime, driver: ends.driver, log: ends.log), heldBy: self)
    }
    runtime.exitWatch = try loop.whenReadable(process.pidfd) { [unowned self, weak runtime] in
      if let runtime { ends.rootHasEnded(runtime) }
    }
  }

  /// Continues a run that an earlier daemon, or another supervisor, has begun.
  func adopt(_ process: WorkerProcess, as runtime: WorkerUnit) throws(SystemCallError) {
    try attach(process, to: runtime)
    // Earlier kills by the kernel in its cgroup don't count for this daemon.
    ends.kernelKills.adopt(runtime)
  }

  /// Opens the memory of all of the worker's processes again. If a process can't be opened now,
  /// that is tried again before a suspension.
  func refreshMemory(of runtime: WorkerUnit) {
    guard let process = runtime.process else { return }
    ends.processes.openMemory(process.memoryRefresh, of: runtime.id.name) { [weak runtime] opened in
      if let now = runtime?.process, now.identity == process.identity { now.adopt(opened) }
    }
  }
}
