import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision

/// Adopts the workers that an earlier daemon has left. Workers that sleep frozen continue to sleep:
/// to wake a hundred of them when a daemon is replaced would need the memory that they were put to
/// sleep to free. All other workers enter the background, whatever state they were left in. It
/// belongs to the event loop's thread.
struct SurvivorAdoption {
  let timers: any Timers
  let recordWriter: WorkerRecordWriter
  let processes: any Processes
  let configuration: ConfigurationInForce
  let declared: DeclaredWorkers
  let conversations: WorkerConversations
  let ends: WorkerEnds
  let holder: ProcessHolder

  var driver: EngineDriver { ends.driver }
  var workers: WorkerRegistry { ends.workers }
  var restarts: RestartSupervisor { ends.restarts }
  var log: DaemonLog { ends.log }

  /// An adoption that takes longer than this is logged, and continues.
  static let timeout = Duration.seconds(60)

  // MARK: adoption

  /// Adopts the workers when the daemon starts. Some are adopted when this function returns, others
  /// later.
  func adoptSurvivors() {
    defer { ends.memory.serveUnadopted { workers[WorkerID($0)]?.process != nil } }
    let loaded: (records: [WorkerRecord], failures: [WorkerRecordError])
    do throws(WorkerRecordError) {
      loaded = try recordWriter.records.loadAll()
    } catch { return log(.error, "can't look for workers of an earlier daemon: \(error)") }
    for error in loaded.failures { log(.error, "\(error)") }
    for record in loaded.records.map({ $0.correctedByNote() }) {
      if hasEnded(record) { forget(record) } else { adopt(record) }
    }
    // The images of workers that couldn't be adopted, or whose record is damaged, stay: while such
    // a worker may live, its image is the only copy of its memory.
    ends.memory.removeOrphanedImages(except: recordWriter.records.contains(_:))
    ends.snapshots.removeAll { !recordWriter.records.contains(sanitised: $0) }
  }

  private func hasEnded(_ record: WorkerRecord) -> Bool {
    processes.life(of: record, bootID: recordWriter.bootID) == .hasEnded
  }

  /// Removes all that is left of a worker that has ended, except the record of its exit.
  private func forget(_ record: WorkerRecord) {
    let reason = "ended while no daemon was running"
    log(.notice, "\(record.name): \(reason)")
    restarts.record(
      ExitRecord(at: Int64(time(nil)), why: reason, status: .unknown, footprint: .zero),
      of: WorkerID(record.name))
    ends.memory.removeRemains(of: record)
    ends.snapshots.remove(record.name)
    recordWriter.records.remove(record.name)
  }

  private func adopt(_ record: WorkerRecord) {
    let worker: WorkerUnit
    do {
      worker = try takeOver(record)
    } catch {
      // The record and the image stay, for a later daemon. While they exist, the worker isn't
      // started a second time.
      if !hasEnded(record) {
        return log(
          .error,
          "\(record.name): can't be adopted: \(error); restart the daemon to try again, or end it "
            + "with `kill -9 \(record.process.pid)`")
      }
      return forget(record)
    }
    guard let sleep = worker.sleep, let target = worker.target() else { return }
    worker.returnsToFront = record.wasInFront || record.state == WorkerState.foreground.rawValue
    switch ends.memory.survivorState(of: target, by: record) {
    case .asleep(let state, let image):
      sleep.adopt(asleepWith: image)
      leaveAsleep(worker, record, in: state)
    case .trimmed(let missing):
      sleep.adopt(asleepWith: nil)
      sleep.missing = missing
      leaveAsleep(worker, record, in: .suspended)
    case .withoutImage(let path):
      // A resume is recorded before it begins, so the worker's memory must still be in the image.
      let reason = "its image \(path) does not exist any more"
      let error = HibernationError(.reading, reason, aftermath: .unverifiable)
      recovered(worker, record, by: RecoveryOutcome(result: .failure(error)))
    case .inDoubt:
      // From here on a missing image means that the memory is back.
      recordWriter.save(worker, state: .resuming, imageDirectory: record.imageDirectory)
      begin(worker.id)
      sleep.perform({ $0.recover(expecting: .of(record), then: $1) }) { [weak worker] in
        if let worker, let recovery = $0 { recovered(worker, record, by: recovery) }
        finish(WorkerID(record.name))
      }
    }
  }

  private func leaveAsleep(
    _ worker: WorkerUnit, _ record: WorkerRecord, in state: WorkerState
  ) {
    conversations.restoreOffers(record, worker)
    begin(worker.id)
    worker.sleep?.perform({ $0.findInputs(then: $1) }) { [weak worker] in
      if let worker, let inputs = $0 { sleepsOn(worker, record, in: state, wokenBy: inputs) }
      finish(WorkerID(record.name))
    }
  }

  private func begin(_ id: WorkerID) {
    declared.returning.begin(id)
    timers.after(Self.timeout) { [returning = declared.returning, log] in
      guard let requests = returning.requestCount(id) else { return }
      log(
        .warning,
        "\(id): adopting it takes longer than \(Self.timeout.text); "
          + "requests that wait for it: \(requests)")
    }
  }

  private func finish(_ id: WorkerID) {
    // The messages that the worker sent meanwhile are received first, and later ones from now on.
    if let worker = workers[id] {
      conversations.startWatchdog(of: worker)
      do throws(SystemCallError) { try worker.conversation?.listenToConnections() } catch {
        log(.warning, "\(id): adopted without its channels to the daemon: \(error)")
      }
    }
    declared.returning.finish(id)
  }

  // MARK: outcomes

  private func sleepsOn(
    _ worker: WorkerUnit, _ record: WorkerRecord, in state: WorkerState,
    wokenBy inputs: Result<any WakeInputs, SystemCallError>
  ) {
    let id = worker.id
    guard workers[id] === worker, worker.process != nil, let watch = worker.wakeWatch else {
      return
    }
    watch.listen(at: inputs)
    if let alarm = record.alarm {
      watch.timer.set(at: Instant(nanoseconds: alarm), "its own timer")
    }
    log(.notice, "\(id): adopted, still \(state.rawValue), pid \(record.process.pid)")
    driver.send(.adopted(id, worker.profile, state))
    worker.conversation?.offers.recount()
    recordWriter.save(worker, state: state)
    let dependsOnInputs =
      worker.configuration.policy.foreground.mode == .activity || processes.forbidsStrangers
    // Only its inputs would wake it, and they can't be watched.
    if dependsOnInputs, let refusal = inputs.refusal {
      driver.send(.wakeNeeded(id, "can't watch its sockets while it sleeps (\(refusal))"))
    }
    // Input may have come before the inputs were watched.
    watch.wakeForWaitingInput()
  }

  private func recovered(_ worker: WorkerUnit, _ record: WorkerRecord, by recovery: RecoveryOutcome)
  {
    let id = worker.id
    guard workers[id] === worker else { return }
    switch recovery.result {
    case .success(let done):
      let restored = ByteCount(Int64(done.restored))
      log(
        .notice,
        "\(id): adopted and woken, pid \(record.process.pid)"
          + (restored > .zero ? ", \(restored) of memory restored" : ""))
      worker.sleep?.missing = done.stillMissing
      let state: WorkerState = worker.returnsToFront ? .foreground : .background
      worker.returnsToFront = false
      driver.send(.adopted(id, worker.profile, state))
      recordWriter.save(worker, state: driver.state.state(of: id) ?? state)
    case .failure(let error) where error.aftermath == .intact:
      // The worker sleeps on. A later attempt with more rights may succeed.
      log(.error, "\(id): adopted; it can't be woken yet: \(error)")
      worker.sleep?.adopt(asleepWith: recovery.image)
      driver.send(
        .adopted(id, worker.profile, recovery.image == nil ? .suspended : .hibernated))
      // No input would wake the worker, because its inputs aren't watched.
      driver.send(.wakeNeeded(id, "it couldn't be woken when it was adopted"))
    case .failure(let error):
      log(.error, "\(id): terminated: its memory can't be restored: \(error)")
      // The engine counts the worker as suspended and may wake it, so this call comes first.
      worker.sleep?.killUnverified()
      driver.send(.adopted(id, worker.profile, .suspended))
      recordWriter.save(worker, state: .background)
    }
  }
}

/// The workers of an earlier daemon that are being adopted, and the requests that wait for it.
/// Until then these workers count as terminated for the engine, which would start them a second
/// time. `SurvivorAdoption` adopts them. It belongs to the event loop's thread.
final class ReturningWorkers {
  private var waiting: [WorkerID: [() -> Void]] = [:]

  /// Whether at least one worker is being adopted.
  var isUnderWay: Bool { !waiting.isEmpty }

  func isAdopting(_ id: WorkerID) -> Bool { waiting[id] != nil }

  /// The number of requests that wait for the worker's adoption; nil if it isn't being adopted.
  func requestCount(_ id: WorkerID) -> Int? { waiting[id]?.count }

  /// Calls `body` when the worker is adopted or has ended, after earlier bodies.
  ///
  /// - Returns: false if the worker isn't being adopted; then `body` isn't called.
  func whenAdopted(_ id: WorkerID, _ body: @escaping () -> Void) -> Bool {
    guard waiting[id] != nil else { return false }
    waiting[id]?.append(body)
    return true
  }

  func begin(_ id: WorkerID) { waiting[id] = [] }

  /// The worker is adopted or has ended. Calls the requests that waited for that.
  func finish(_ id: WorkerID) {
    for request in waiting.removeValue(forKey: id) ?? [] { request() }
  }
}
