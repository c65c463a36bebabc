import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

// What a daemon finds when it starts: its configuration, and workers of an earlier daemon.

extension Daemon {
  func introduceWorkers() {
    for configuration in settings.configuration.workers {
      let runtime = WorkerRuntime(
        configuration: configuration,
        environment: settings.environment.merging(configuration.environment) { $1 },
        isDeclared: true)
      workers[runtime.id] = runtime
      feed(.added(runtime.id, runtime.profile))
    }
  }

  /// Declared workers that start by themselves and aren't here already.
  func startWorkers() {
    for configuration in settings.configuration.workers where configuration.autostart {
      let id = WorkerID(configuration.name)
      guard engine.state(of: id) == .terminated else { continue }
      request(.start, id) { [unowned self] answer in
        if answer.code != .done { log(.error, answer.text) }
      }
    }
  }

  func saveRecord(_ runtime: WorkerRuntime, state: WorkerState) {
    guard let process = runtime.process, state != .terminated else { return }
    var record = WorkerRecord(process, bootID: bootID, state: state.rawValue)
    record.imagePath = runtime.imagePath
    do throws(WorkerRecordError) {
      try records.save(record)
    } catch { log(.error, "\(runtime.id): a later daemon won't find it: \(error)") }
  }

  /// Workers whose daemon died: they live on, and are ours now. Whatever state they were left in,
  /// they are brought back into the background.
  func adoptSurvivors() {
    let found: (records: [WorkerRecord], failures: [WorkerRecordError])
    do throws(WorkerRecordError) {
      found = try records.loadAll()
    } catch { return log(.error, "earlier workers can't be looked for: \(error)") }
    for error in found.failures { log(.error, "\(error)") }
    for record in found.records {
      if record.isAlive(bootID: bootID) {
        adopt(record)
      } else {
        log(.notice, "\(record.name): ended while there was no daemon")
        unlink(state.image(of: record.name))
        records.remove(record.name)
      }
    }
    removeOrphanedImages()
  }

  private func adopt(_ record: WorkerRecord) {
    let id = WorkerID(record.name)
    let runtime =
      workers[id]
      ?? WorkerRuntime(
        configuration: WorkerConfiguration(
          name: record.name, command: record.command, directory: record.directory,
          policy: engine.policy),
        environment: settings.environment, isDeclared: false)
    workers[id] = runtime
    do {
      try takeOver(record, runtime)
    } catch {
      log(.error, "\(id): can't be adopted: \(error)")
      return
    }
    guard let target = runtime.target() else { return }
    let path = state.image(of: record.name)
    runtime.isBusy = true
    adopting[id] = []
    let started = EventLoop.now
    hibernation.recover(target, from: path) { [mailbox] result in
      mailbox.post { daemon in
        daemon.isDone(runtime: id) {
          daemon.recovered(id, result, started: started)
          for request in daemon.adopting.removeValue(forKey: id) ?? [] { request() }
        }
      }
    }
  }

  private func takeOver(_ record: WorkerRecord, _ runtime: WorkerRuntime) throws {
    let cgroup = try record.cgroupPath.map { try WorkerCgroup(path: $0) }
    // Abstract names too: the worker knows no other.
    runtime.notify = try record.notifySocket.map { try NotifySocket(path: $0) }
    runtime.pressure = try record.pressureWatch.map { try PressureWatch(path: $0) }
    let plan = LaunchPlan(
      name: record.name, command: record.command, directory: record.directory,
      environment: runtime.environment, cgroup: cgroup, logPath: record.logPath,
      notifySocket: record.notifySocket, pressureWatch: record.pressureWatch)
    let process = try WorkerProcess.adopt(record.process, plan: plan)
    try process.refreshMemory()
    try attach(process, to: runtime)
    try listen(on: runtime)
  }

  private func recovered(
    _ id: WorkerID, _ result: Result<ResumeSummary, HibernationError>, started: Instant
  ) {
    guard let runtime = workers[id] else { return }
    switch result {
    case .success(let summary):
      let pid = runtime.process?.identity.pid ?? 0
      let memory = ByteCount(Int64(summary.restored))
      log(
        .notice,
        "\(id): adopted, running again as pid \(pid)"
          + (memory > .zero ? ", \(memory) of its memory brought back" : ""))
      feed(.adopted(id, runtime.profile, .background))
    case .failure(let error) where error.aftermath == .intact:
      // It sleeps on, and a later try with more rights may succeed.
      log(.error, "\(id): adopted, but it can't be woken yet: \(error)")
      runtime.imagePath = state.image(of: id.name)
      return feed(.adopted(id, runtime.profile, .hibernated))
    case .failure(let error):
      log(.error, "\(id): can't be brought back and is ended: \(error)")
      // Before the engine, which takes it for suspended, can want it awake.
      condemn(id)
      feed(.adopted(id, runtime.profile, .suspended))
    }
    saveRecord(runtime, state: .background)
  }

  /// Images whose workers are gone.
  private func removeOrphanedImages() {
    let wanted = Set(workers.values.filter { $0.process != nil }.map { "\($0.id.name).image" })
    for name in (try? listDirectory(state.images)) ?? [] where !wanted.contains(name) {
      if !wanted.contains(String(name.dropLast(name.hasSuffix(".partial") ? 8 : 0))) {
        unlink("\(state.images)/\(name)")
      }
    }
  }
}
