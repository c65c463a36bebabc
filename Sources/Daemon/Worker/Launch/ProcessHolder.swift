import Lifecycle
import Linux
import PolicyFile
import Supervision

/// The functions of the daemon that `ProcessHolder` uses.
protocol ProcessHost: AnyObject {
  func makeSleep(for runtime: WorkerUnit)
  /// - Parameter refreshMemory: opens the memory of all its processes again.
  func makeReadinessHost(
    for runtime: WorkerUnit, _ process: WorkerProcess,
    refreshMemory: @escaping (WorkerUnit) -> Void
  ) -> any ReadinessHost
  func rootHasEnded(_ runtime: WorkerUnit)
  /// An earlier daemon, or another supervisor, has begun its run.
  func isAdopted(_ runtime: WorkerUnit)
  /// On another thread; `then` is called on the loop where its memories could be opened.
  func open(
    _ refresh: MemoryRefresh, of id: WorkerID, then: @escaping (MemoryRefresh.Outcome) -> Void)
}

/// Holds running processes, launched and adopted ones. Belongs to the loop's thread.
final class ProcessHolder {
  private let loop: any Timers & DescriptorWatches
  private let host: any ProcessHost

  init(_ loop: any Timers & DescriptorWatches, _ host: any ProcessHost) {
    self.loop = loop
    self.host = host
  }

  /// Begins a run, and watches for its end.
  func attach(_ process: WorkerProcess, to runtime: WorkerUnit) throws(SystemCallError) {
    runtime.process = process
    if runtime.sleep == nil { host.makeSleep(for: runtime) }
    runtime.readiness?.end()
    runtime.readiness = runtime.configuration.readiness.map {
      ReadinessWatch(
        Readiness(ReadinessRule($0), worker: process), timers: loop,
        host: host.makeReadinessHost(for: runtime, process) { [unowned self] in
          self.refreshMemory(of: $0)
        })
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
