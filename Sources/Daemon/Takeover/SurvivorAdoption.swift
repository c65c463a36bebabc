import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision

/// The workers that an earlier daemon has left: they live on, and are this daemon's now. Those that rest frozen sleep
/// on, because waking a hundred of them at once, when a daemon is replaced, would need the very memory that they
/// were put to sleep for. All others are brought back into the background, whatever state they were left in.
/// Belongs to the loop's thread.
final class SurvivorAdoption {
  private let driver: EngineDriver
  private let workers: WorkerRegistry
  private let timers: any Timers
  private let host: any SurvivorHost
  /// Workers that are being brought back, and the requests that wait for that: until then the engine takes them
  /// for terminated, and would start them a second time.
  private var waiting: [WorkerID: [() -> Void]] = [:]

  /// A longer adoption is logged, and goes on.
  static let patience = Duration.seconds(60)

  init(
    _ driver: EngineDriver, _ workers: WorkerRegistry, timers: any Timers,
    host: any SurvivorHost
  ) {
    self.driver = driver
    self.workers = workers
    self.timers = timers
    self.host = host
  }

  // MARK: what there is

  /// At least one is being brought back.
  var isUnderWay: Bool { !waiting.isEmpty }

  func isAdopting(_ id: WorkerID) -> Bool { waiting[id] != nil }

  /// Calls `body` when the worker is back, or has ended; what was passed earlier is called before. False: it isn't
  /// being brought back, and `body` is not called.
  func whenBack(_ id: WorkerID, _ body: @escaping () -> Void) -> Bool {
    guard waiting[id] != nil else { return false }
    waiting[id]?.append(body)
    return true
  }

  // MARK: adoption

  /// At the daemon's start. Some are back when this returns, others later.
  func adoptSurvivors() {
    let found: (records: [WorkerRecord], failures: [WorkerRecordError])
    do throws(WorkerRecordError) {
      found = try host.loadRecords()
    } catch { return host.log(.error, "earlier workers can't be looked for: \(error)") }
    for error in found.failures { host.log(.error, "\(error)") }
    for record in found.records {
      if host.describesRunning(record) { adopt(record) } else { forget(record) }
    }
    host.removeOrphans()
  }

  private func forget(_ record: WorkerRecord) {
    host.log(.notice, "\(record.name): ended while there was no daemon")
    host.forget(record)
  }

  private func adopt(_ record: WorkerRecord) {
    let id = WorkerID(record.name)
    do {
      try host.takeOver(record)
    } catch {
      // Its record and its image stay, for a later daemon; while they do, it isn't started a second time.
      if host.describesRunning(record) {
        return host.log(.error, "\(id): can't be adopted: \(error)")
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
        if let watch = $0 { sleepsOn(record, state, watch) }
        isOver(id)
      }
    case .withoutImage(let path):
      // A resume is written down before it begins, so its memory is still in the image.
      let why = "its image \(path) is gone, and its memory with it"
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
    waiting[id] = []
    timers.after(Self.patience) { [weak self] in
      guard let self, let requests = waiting[id]?.count else { return }
      host.log(
        .warning,
        "\(id): its adoption takes longer than \(Self.patience.spoken); "
          + "requests that wait for it: \(requests)")
    }
  }

  private func isOver(_ id: WorkerID) {
    // What the worker itself has said meanwhile is received first.
    host.isBack(id)
    for request in waiting.removeValue(forKey: id) ?? [] { request() }
  }

  // MARK: outcomes

  private func sleepsOn(_ record: WorkerRecord, _ state: WorkerState, _ watch: SurvivorWatch) {
    let id = WorkerID(record.name)
    guard let runtime = workers[id] else { return }
    host.log(
      .notice, "\(id): adopted, \(state.rawValue) as it was, pid \(record.process.pid)")
    driver.send(.adopted(id, runtime.profile, state))
    runtime.conversation?.offers.recount()
    host.save(id, state)
    if let why = unheard(runtime, watch) { driver.send(.wakeNeeded(id, why)) }
    host.wakeForWhatWaits(id)
  }

  /// Why it can't sleep on: nothing but its inputs would wake it, and they can't be watched.
  private func unheard(_ runtime: WorkerUnit, _ watch: SurvivorWatch) -> String? {
    let dependsOnInputs =
      runtime.configuration.policy.foreground.mode == .activity || host.forbidsStrangers
    guard dependsOnInputs, let refusal = watch.refusal else { return nil }
    return "its sockets can't be watched while it sleeps (\(refusal))"
  }

  private func recovered(_ record: WorkerRecord, _ recovery: SurvivorRecovery) {
    let id = WorkerID(record.name)
    guard let runtime = workers[id] else { return }
    switch recovery.result {
    case .success(let memory):
      host.log(
        .notice,
        "\(id): adopted, running again as pid \(record.process.pid)"
          + (memory > .zero ? ", \(memory) of its memory brought back" : ""))
      let place: WorkerState = runtime.returnsToFront ? .foreground : .background
      runtime.returnsToFront = false
      driver.send(.adopted(id, runtime.profile, place))
      host.save(id, driver.state.state(of: id) ?? place)
    case .failure(let error) where error.aftermath == .intact:
      // It sleeps on, and a later try with more rights may succeed.
      host.log(.error, "\(id): adopted, but it can't be woken yet: \(error)")
      host.staysAsleep(id, with: recovery.image)
      driver.send(
        .adopted(id, runtime.profile, recovery.image == nil ? .suspended : .hibernated))
    case .failure(let error):
      host.log(.error, "\(id): can't be brought back and is ended: \(error)")
      // Before the engine, which takes it for suspended, can want it awake.
      host.killUnverified(id)
      driver.send(.adopted(id, runtime.profile, .suspended))
      host.save(id, .background)
    }
  }
}
