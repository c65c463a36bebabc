import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision

/// Adopts the workers that an earlier daemon has left. Those that rest frozen sleep on: waking a hundred of
/// them at once, when a daemon is replaced, would need the memory that they were put to sleep to free. All
/// others are brought into the background, whatever state they were left in. Belongs to the loop's thread.
final class SurvivorAdoption {
  private let driver: EngineDriver
  private let workers: WorkerRegistry
  private let timers: any Timers
  private let returning: ReturningWorkers
  private let host: any SurvivorHost

  /// A longer adoption is logged, and continues.
  static let patience = Duration.seconds(60)

  init(
    driver: EngineDriver, workers: WorkerRegistry, returning: ReturningWorkers,
    timers: any Timers, host: any SurvivorHost
  ) {
    self.driver = driver
    self.workers = workers
    self.returning = returning
    self.timers = timers
    self.host = host
  }

  // MARK: adoption

  /// At the daemon's start. Some are adopted when this returns, others later.
  func adoptSurvivors() {
    let found: (records: [WorkerRecord], failures: [WorkerRecordError])
    do throws(WorkerRecordError) {
      found = try host.loadRecords()
    } catch { return host.log(.error, "can't look for workers of an earlier daemon: \(error)") }
    for error in found.failures { host.log(.error, "\(error)") }
    for record in found.records {
      if host.life(of: record) == .hasEnded { forget(record) } else { adopt(record) }
    }
    host.removeOrphans()
  }

  private func forget(_ record: WorkerRecord) {
    host.log(.notice, "\(record.name): ended while no daemon was running")
    host.forget(record)
  }

  private func adopt(_ record: WorkerRecord) {
    let id = WorkerID(record.name)
    do {
      try host.takeOver(record)
    } catch {
      // Its record and its image stay, for a later daemon; while they exist, it isn't started a second time.
      if host.life(of: record) != .hasEnded {
        return host.log(
          .error,
          "\(id): can't be adopted: \(error); restart the daemon to try again, or end it with "
            + "`kill -9 \(record.process.pid)`")
      }
      return forget(record)
    }
    guard let runtime = workers[id] else { return }
    runtime.returnsToFront = record.wasInFront || record.state == WorkerState.foreground.rawValue
    switch host.rest(of: record) {
    case .asleep(let state, let image):
      host.leaveAsleep(record, with: image)
      begin(id)
      host.watchInputs(of: record) { [unowned self] in
        if let watch = $0 { sleepsOn(record, state: state, watch: watch) }
        isOver(id)
      }
    case .withoutImage(let path):
      // A resume is recorded before it begins, so its memory is still in the image.
      let why = "its image \(path) does not exist any more"
      let error = HibernationError(.reading, why, aftermath: .unverifiable)
      recovered(record, SurvivorRecovery(result: .failure(error)))
    case .inDoubt:
      // From here on a missing image means that the memory is back.
      host.save(id, .resuming)
      begin(id)
      host.recover(record) { [unowned self] in
        if let recovery = $0 { recovered(record, recovery) }
        isOver(id)
      }
    }
  }

  private func begin(_ id: WorkerID) {
    returning.begin(id)
    timers.after(Self.patience) { [weak self] in
      guard let self, let requests = returning.requestCount(id) else { return }
      host.log(
        .warning,
        "\(id): adopting it takes longer than \(Self.patience.spoken); "
          + "requests that wait for it: \(requests)")
    }
  }

  private func isOver(_ id: WorkerID) {
    // The worker's own messages from meanwhile are received first.
    host.isBack(id)
    returning.isOver(id)
  }

  // MARK: outcomes

  private func sleepsOn(_ record: WorkerRecord, state: WorkerState, watch: SurvivorWatch) {
    let id = WorkerID(record.name)
    guard let runtime = workers[id] else { return }
    host.log(
      .notice, "\(id): adopted, still \(state.rawValue), pid \(record.process.pid)")
    driver.send(.adopted(id, runtime.profile, state))
    runtime.conversation?.offers.recount()
    host.save(id, state)
    if let why = unheard(runtime, watch) { driver.send(.wakeNeeded(id, why)) }
    host.wakeForWhatWaits(id)
  }

  /// Why it can't sleep on: only its inputs would wake it, and they can't be watched.
  private func unheard(_ runtime: WorkerUnit, _ watch: SurvivorWatch) -> String? {
    let dependsOnInputs =
      runtime.configuration.policy.foreground.mode == .activity || host.forbidsStrangers
    guard dependsOnInputs, let refusal = watch.refusal else { return nil }
    return "can't watch its sockets while it sleeps (\(refusal))"
  }

  private func recovered(_ record: WorkerRecord, _ recovery: SurvivorRecovery) {
    let id = WorkerID(record.name)
    guard let runtime = workers[id] else { return }
    switch recovery.result {
    case .success(let memory):
      host.log(
        .notice,
        "\(id): adopted and woken, pid \(record.process.pid)"
          + (memory > .zero ? ", \(memory) of memory restored" : ""))
      let place: WorkerState = runtime.returnsToFront ? .foreground : .background
      runtime.returnsToFront = false
      driver.send(.adopted(id, runtime.profile, place))
      host.save(id, driver.state.state(of: id) ?? place)
    case .failure(let error) where error.aftermath == .intact:
      // It sleeps on, and a later try with more rights may succeed.
      host.log(.error, "\(id): adopted; it can't be woken yet: \(error)")
      host.staysAsleep(id, with: recovery.image)
      driver.send(
        .adopted(id, runtime.profile, recovery.image == nil ? .suspended : .hibernated))
      // Nothing watches its inputs: no input would wake it.
      driver.send(.wakeNeeded(id, "it couldn't be woken when it was adopted"))
    case .failure(let error):
      host.log(.error, "\(id): terminated: its memory can't be restored: \(error)")
      // Called before the engine can wake it, because the engine takes it for suspended.
      host.killUnverified(id)
      driver.send(.adopted(id, runtime.profile, .suspended))
      host.save(id, .background)
    }
  }
}
