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
  func attach(_ process: WorkerProcess, to worker: WorkerUnit) throws(SystemCallError) {
    worker.process = process
    if worker.sleep == nil { sleeps.makeSleep(for: worker) }
    worker.readiness?.end()
    worker.readiness = worker.configuration.readiness.map {
      ReadinessWatch(
        $0, process, of: WorkerHandle(worker: worker, driver: ends.driver, log: ends.log),
        heldBy: self)
    }
    worker.exitWatch = try loop.whenReadable(process.pidfd) { [unowned self, weak worker] in
      if let worker { ends.rootDidEnd(worker) }
    }
  }

  /// Continues a run that an earlier daemon, or another supervisor, has begun.
  func adopt(_ process: WorkerProcess, as worker: WorkerUnit) throws(SystemCallError) {
    try attach(process, to: worker)
    // Earlier kills by the kernel in its cgroup don't count for this daemon.
    ends.kernelKills.begin(worker, isAdopted: true)
  }

  /// Opens the memory of all of the worker's processes again. If a process can't be opened now,
  /// that is tried again before a suspension.
  func refreshMemory(of worker: WorkerUnit) {
    guard let process = worker.process else { return }
    ends.processes.openMemory(process.memoryRefresh, of: worker.id.name) { [weak worker] opened in
      if let now = worker?.process, now.identity == process.identity { now.store(opened) }
    }
  }
}
