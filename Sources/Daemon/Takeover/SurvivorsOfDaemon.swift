import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// The daemon's implementation for `SurvivorAdoption`.
final class SurvivorsOfDaemon: SurvivorHost {
  struct Parts {
    let services: Services
    let state: StateDirectory
    let driver: EngineDriver
    let workers: WorkerRegistry
    let bootID: String
    /// The daemon's own.
    let environment: [String: String]
    let recordWriter: WorkerRecordWriter
    let learnedMemory: LearnedMemoryKeeper
    let snapshots: SnapshotKeeper
    let restarts: RestartSupervisor
    let conversations: WorkerConversations
    let planner: LaunchPlanner
    let processes: ProcessHolder
    let keeperStarter: KeeperStarter<DescriptorKeeperMeans>
    let watchdogs: WatchdogReporter
    var configuration = DaemonConfiguration()
  }

  private let parts: Parts
  private let remains: SurvivorRemains

  init(_ parts: Parts) {
    self.parts = parts
    remains = SurvivorRemains(
      state: parts.state, records: parts.services.records, snapshots: parts.snapshots,
      bootID: parts.bootID, log: parts.services.log)
  }

  private var services: Services { parts.services }

  // MARK: records

  var forbidsStrangers: Bool { Yama.current.forbidsStrangers }

  func loadRecords() throws(WorkerRecordError) -> (
    records: [WorkerRecord], failures: [WorkerRecordError]
  ) {
    var found = try services.records.loadAll()
    found.records = found.records.map { $0.correctedByNote() }
    return found
  }

  func life(of record: WorkerRecord) -> ProcessLife { record.life(bootID: parts.bootID) }

  func forget(_ record: WorkerRecord) {
    parts.restarts.record(
      ExitRecord(
        at: Int64(time(nil)), why: "ended while no daemon was running", status: .unknown,
        footprint: .zero),
      of: WorkerID(record.name))
    remains.remove(record)
  }

  func removeOrphans() { remains.removeOrphans() }

  func save(_ id: WorkerID, _ state: WorkerState) {
    if let runtime = parts.workers[id] { parts.recordWriter.save(runtime, state: state) }
  }

  // MARK: its process

  func takeOver(_ record: WorkerRecord) throws {
    let runtime = introduce(record)
    do { try attach(record, to: runtime) } catch {
      giveUp(runtime)
      throw error
    }
  }

  /// The next run is this daemon's own, and has nothing of what the record says. The image stays.
  private func giveUp(_ runtime: WorkerUnit) {
    runtime.endRun(services.loop)
    runtime.external = nil
    guard !runtime.isDeclared else { return }
    parts.workers[runtime.id] = nil
    parts.restarts.remove(runtime.id)
  }

  private func attach(_ record: WorkerRecord, to runtime: WorkerUnit) throws {
    let cgroup = try record.cgroupPath.map {
      try WorkerCgroup(path: $0, isExternal: record.external != nil)
    }
    let channels = SurvivorChannels(
      record: record, takesDescriptors: runtime.configuration.fdstore > 0, log: services.log)
    parts.conversations.makeConversation(runtime, over: channels.open())
    var plan = LaunchPlan(
      name: record.name, command: record.command, directory: record.directory,
      environment: runtime.environment, cgroup: cgroup, logPath: record.logPath,
      notifySocket: record.notifySocket, pressureWatch: record.pressureWatch)
    plan.workerSocket = record.workerSocket
    parts.planner.complete(adopted: &plan, of: runtime)
    let process = try WorkerProcess.adopt(record.process, plan: plan)
    giveBackMemories(to: process)
    try process.refreshMemory()
    if runtime.external != nil, cgroup != nil {
      runtime.external?.jobs = ManagerJobs(root: record.process, tree: try process.tree())
    }
    try parts.processes.adopt(process, as: runtime)
    runtime.noteLaunch()
    if let launched = runtime.launched,
      (launched.command, launched.directory) != (record.command, record.directory)
    {
      runtime.launched?.command = record.command
      runtime.launched?.directory = record.directory
    }
    // A message that it sends before the engine knows it again would be lost: it waits in the socket.
    try runtime.conversation?.listen()
  }

  private func introduce(_ record: WorkerRecord) -> WorkerUnit {
    let id = WorkerID(record.name)
    let runtime =
      parts.workers[id]
      ?? WorkerUnit(
        configuration: record.undeclared(
          in: parts.configuration, machine: parts.driver.state.policy,
          environment: parts.environment, log: services.log),
        environment: parts.environment, isDeclared: false)
    if parts.workers[id] == nil {
      parts.restarts.add(id, exits: parts.learnedMemory.rememberedExits(of: id))
    }
    parts.workers[id] = runtime
    runtime.asleepSince = record.asleepSince.map { Instant(nanoseconds: $0) }
    runtime.watchdogInterval = record.watchdog.map { .nanoseconds($0) }
    if let waits = record.waits { runtime.waits = TimedWaits(waits) }
    runtime.external = record.external.map {
      ExternalWorker(
        mayBeTerminated: $0 == .mayBeTerminated, rule: record.rule,
        chosen: record.chosenPolicy)
    }
    if runtime.external != nil { record.giveBackAdoption(to: &runtime.configuration) }
    return runtime
  }

  /// The descriptors that an earlier daemon had opened of it.
  private func giveBackMemories(to process: WorkerProcess) {
    guard parts.keeperStarter.hasKeptMemories else { return }
    do throws(SystemCallError) {
      let processes = try process.tree().processes.map(\.identity)
      for (owner, memory) in parts.keeperStarter.keptMemories(of: processes) {
        process.hold(memory, of: owner)
      }
    } catch {
      services.log(.warning, "can't take over a worker's memory from an earlier daemon: \(error)")
    }
  }

  // MARK: its sleep

  func rest(of record: WorkerRecord) -> SurvivorRest {
    guard let target = parts.workers[WorkerID(record.name)]?.target() else { return .inDoubt }
    let path = parts.state.image(of: record.name)
    switch record.state {
    case WorkerState.hibernated.rawValue:
      let expected = ImageExpectation.of(record)
      if let absence = expected.absence(of: path) {
        if absence.aftermath == .unverifiable { return .withoutImage(path) }
        services.log(.error, "\(record.name): sleeps on: \(absence)")
      } else if !Hibernator.isAtRest(target, on: path, expecting: expected) {
        return .inDoubt
      }
      return .asleep(
        .hibernated,
        ImageOnDisk(
          RestingImage(path: path, expecting: expected), length: Hibernator.lengthOnDisk(of: path)))
    case WorkerState.suspended.rawValue:
      // A hibernation may have begun without being recorded.
      guard !fileExists(path), !fileExists(path + ".partial"),
        Hibernator.isAtRest(target, on: nil)
      else { return .inDoubt }
      return .asleep(.suspended, nil)
    default: return .inDoubt
    }
  }

  func leaveAsleep(_ record: WorkerRecord, with image: ImageOnDisk?) {
    guard let runtime = parts.workers[WorkerID(record.name)] else { return }
    runtime.sleep?.adopt(asleepWith: image)
    parts.conversations.findOffersAgain(record, runtime)
  }

  func staysAsleep(_ id: WorkerID, with image: ImageOnDisk?) {
    parts.workers[id]?.sleep?.adopt(asleepWith: image)
  }

  func watchInputs(of record: WorkerRecord, then: @escaping (SurvivorWatch?) -> Void) {
    let id = WorkerID(record.name)
    guard let runtime = parts.workers[id], let target = runtime.target() else {
      return isGone(then)
    }
    let ownChannels = runtime.ownChannels
    let answered = runtime.answeredPorts
    perform(runtime) {
      [services] (done: @escaping @Sendable (Result<any WakeInputs, SystemCallError>) -> Void) in
      services.mechanics.submit(about: id.name) {
        done(
          Result { () throws(SystemCallError) in
            let tree = try ProcessTree.discover(
              root: target.root, session: target.session, cgroup: target.cgroup)
            return try WakeSources(of: tree, ownChannels: ownChannels, answering: answered)
          })
      }
    } then: { [workers = parts.workers] sources in
      guard let sources, workers[id] === runtime, runtime.process != nil else {
        return then(nil)
      }
      runtime.wakeWatch?.listen(at: sources)
      if let alarm = record.alarm {
        runtime.wakeWatch?.timer.set(
          at: Instant(nanoseconds: alarm), "its own timer")
      }
      then(SurvivorWatch(refusal: sources.refusal))
    }
  }

  func recover(_ record: WorkerRecord, then: @escaping (SurvivorRecovery?) -> Void) {
    guard let runtime = parts.workers[WorkerID(record.name)], let target = runtime.target() else {
      return isGone(then)
    }
    let path = parts.state.image(of: record.name)
    let recorded = services.records.barrier(record.name)
    perform(runtime) { [services] (done: @escaping @Sendable (Recovered) -> Void) in
      services.hibernation.recover(
        target, from: path, expecting: .of(record), recorded: recorded
      ) { result in
        done(Recovered(result: result, imageAt: path))
      }
    } then: { found in
      then(
        found.map {
          SurvivorRecovery(
            result: $0.result.map { ByteCount(Int64($0.restored)) }, image: $0.image)
        })
    }
  }

  /// - Parameter then: gets nil where the run has ended, or the worker was removed meanwhile.
  private func perform<Outcome: Sendable>(
    _ runtime: WorkerUnit,
    _ operation: (_ done: @escaping @Sendable (Outcome) -> Void) -> Void,
    then: @escaping (Outcome?) -> Void
  ) {
    guard let sleep = runtime.sleep else { return isGone(then) }
    var isTaken = false
    sleep.perform { [services] (back: @escaping (Outcome) -> Void) in
      operation(
        services.loopReturn.callback { outcome in
          back(outcome)
          if !isTaken { then(nil) }
        })
    } then: { outcome in
      isTaken = true
      then(outcome)
    }
  }

  private func isGone<Outcome>(_ then: @escaping (Outcome?) -> Void) {
    services.loop.after(.zero) { then(nil) }
  }

  func killUnverified(_ id: WorkerID) { parts.workers[id]?.sleep?.killUnverified() }

  // MARK: afterwards

  func isBack(_ id: WorkerID) {
    guard let runtime = parts.workers[id] else { return }
    parts.watchdogs.startWatchdog(of: runtime)
    guard let conversation = runtime.conversation else { return }
    do throws(SystemCallError) { try conversation.listenToConnections() } catch {
      services.log(.warning, "\(id): adopted without its channels to the daemon: \(error)")
    }
  }

  func wakeForWhatWaits(_ id: WorkerID) {
    parts.workers[id]?.wakeWatch?.wakeForWhatWaits()
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) { services.log(priority, text) }
}
