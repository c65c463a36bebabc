import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

extension SurvivorAdoption {
  /// Takes over the process of a worker that an earlier daemon has started. From then on the
  /// registry has the worker with its channels, and the daemon is notified of its end.
  func takeOver(_ record: WorkerRecord) throws -> WorkerUnit {
    let worker = introduce(record)
    do { try attach(record, to: worker) } catch {
      // Its next run has nothing from the record. The image stays.
      worker.endRun(holder.loop)
      worker.external = nil
      if !worker.isDeclared {
        workers[worker.id] = nil
        restarts.remove(worker.id)
      }
      throw error
    }
    return worker
  }

  private func attach(_ record: WorkerRecord, to worker: WorkerUnit) throws {
    let cgroup = try record.cgroup()
    let channels = SurvivorChannels(
      record: record, acceptsDescriptors: worker.configuration.fdstore > 0, log: log)
    conversations.makeConversation(worker, over: channels.open())
    var plan = LaunchPlan(
      name: record.name, command: record.command, directory: record.directory,
      environment: worker.environment, cgroup: cgroup, logPath: record.logPath,
      notifySocket: record.notifySocket, pressureWatch: record.pressureWatch)
    plan.workerSocket = record.workerSocket
    ends.launchPlanner.complete(adopted: &plan, of: worker)
    let process = try ends.memory.openProcess(record.process, plan)
    try ends.memory.openMemories(of: process)
    if worker.external != nil, cgroup != nil {
      worker.external?.jobs = ManagerJobs(
        root: record.process, tree: try ends.memory.tree(of: process))
    }
    try holder.adopt(process, as: worker)
    worker.recordLaunch()
    if let launched = worker.launched,
      (launched.command, launched.directory) != (record.command, record.directory)
    {
      worker.launched?.command = record.command
      worker.launched?.directory = record.directory
    }
    // A message that the worker sends before the engine knows it again would be lost. It waits in
    // the socket.
    try worker.conversation?.listen()
  }

  private func introduce(_ record: WorkerRecord) -> WorkerUnit {
    let id = WorkerID(record.name)
    let worker =
      workers[id]
      ?? WorkerUnit(
        configuration: record.undeclared(
          in: configuration.current, machine: driver.state.policy,
          environment: declared.environment, log: log),
        environment: declared.environment, isDeclared: false)
    if workers[id] == nil {
      restarts.add(id, exits: declared.learnedMemory.rememberedExits(of: id))
    }
    workers[id] = worker
    worker.asleepSince = record.asleepSince.map { Instant(nanoseconds: $0) }
    worker.watchdogInterval = record.watchdog.map { .nanoseconds($0) }
    if let waits = record.waits { worker.waits = TimedWaits(waits) }
    worker.external = record.external.map {
      ExternalWorker(
        mayBeTerminated: $0 == .mayBeTerminated, rule: record.rule, chosen: record.chosenPolicy)
    }
    if worker.external != nil { record.giveBackAdoption(to: &worker.configuration) }
    return worker
  }
}

/// Opens the sockets again that a worker of an earlier daemon uses.
struct SurvivorChannels {
  let record: WorkerRecord
  /// Whether the worker may store descriptors (`FDSTORE=1`).
  let acceptsDescriptors: Bool
  let log: DaemonLog

  /// Opens the sockets at their recorded names, abstract names too: the worker knows no other.
  func open() -> WorkerChannels {
    WorkerChannels(
      notify: reopen(record.notifySocket) { path throws(SystemCallError) in
        try NotifySocket(path: path, acceptsDescriptors: acceptsDescriptors)
      },
      pressure: reopen(record.pressureWatch, PressureWatch.init(path:)),
      talk: reopen(record.workerSocket, WorkerSocket.init(path:)))
  }

  /// Opens a socket again. If that fails, the worker is adopted without the channel: it can't
  /// report anything then, and that is no reason to lose it. A program that removes old files (in
  /// /tmp, say) may have removed the directory.
  private func reopen<Socket>(
    _ path: String?, _ open: (String) throws(SystemCallError) -> Socket
  ) -> Socket? {
    guard let path else { return nil }
    do {
      guard let slash = path.lastIndex(of: "/"), !path.hasPrefix("@") else { return try open(path) }
      let directory = try openTrusted(String(path[..<slash]), making: true, as: .shared)
      let file = String(path[path.index(after: slash)...])
      // If the worker runs as another user, the socket belongs to that user. A socket that doesn't
      // exist has no owner to restore.
      let before = try? directory.status(of: file)
      let socket = try open(path)
      if let before, before.st_uid != geteuid() {
        try directory.setOwner(of: file, user: before.st_uid, group: before.st_gid)
      }
      return socket
    } catch {
      log(.warning, "\(record.name): adopted without its channels to the daemon: \(error)")
      return nil
    }
  }
}
