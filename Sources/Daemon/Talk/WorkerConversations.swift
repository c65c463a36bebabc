import Lifecycle
import Policy
import Supervision

/// Makes the conversation of each run of a worker, and has what all of them share. It belongs to
/// the event loop's thread.
final class WorkerConversations {
  let services: Services
  let timers: any Timers
  let watches: any DescriptorWatches
  let workers: WorkerRegistry
  let reloads: WorkerReloads
  let snapshots: SnapshotKeeper
  let recordWriter: WorkerRecordWriter
  let driver: EngineDriver
  private var lastNumber: UInt64 = 0

  init(
    services: Services, timers: any Timers, watches: any DescriptorWatches, driver: EngineDriver,
    workers: WorkerRegistry, reloads: WorkerReloads, snapshots: SnapshotKeeper,
    recordWriter: WorkerRecordWriter
  ) {
    self.services = services
    self.timers = timers
    self.watches = watches
    self.driver = driver
    self.workers = workers
    self.reloads = reloads
    self.snapshots = snapshots
    self.recordWriter = recordWriter
  }

  /// Makes the channels of a worker's run. Nothing is read from them yet.
  func makeConversation(_ worker: WorkerUnit, over channels: WorkerChannels) {
    worker.conversation = WorkerConversation(
      WorkerHandle(worker: worker, driver: driver, log: services.log), over: channels, self)
  }

  /// A number for the next message to a worker. It is unique in the daemon's life.
  func nextNumber() -> UInt64 {
    lastNumber += 1
    return lastNumber
  }

  // MARK: messages about its life cycle

  func sendPressure() {
    for worker in workers.values where driver.state.state(of: worker.id)?.runs == true {
      worker.conversation?.sendPressure()
    }
  }

  func expireTask(_ id: WorkerID, _ task: String) {
    services.log(.notice, "\(id): background task \(task) is out of time")
    workers[id]?.conversation?.taskExpired(task)
  }

  // MARK: purgeable memory

  func restoreOffers(_ record: WorkerRecord, _ worker: WorkerUnit) {
    // A worker that has ended doesn't sleep.
    guard !record.purgeable.isEmpty, let tree = try? worker.process?.tree() else { return }
    worker.conversation?.offers.restore(record.purgeable, in: tree)
  }

  func purge(_ id: WorkerID) {
    guard let purge = workers[id]?.conversation?.offers.purge else {
      return driver.send(.purgeFailed(id, "it offers no purgeable memory"))
    }
    let done = services.loopReturn.callback { [unowned self] in purged(id, $0) }
    // When a worker whose daemon has ended runs, it counts memory that is being purged as its own.
    // So a wake waits for the purge (`afterWhatIsUnderWay`).
    services.mechanics.submit(about: id.name) { done(purge()) }
  }

  private func purged(_ id: WorkerID, _ freed: Int64) {
    guard freed > 0 else {
      return driver.send(.purgeFailed(id, "all of its purgeable memory is in use"))
    }
    workers[id]?.measuring.didMoveMemory()
    services.log(.info, "\(id): purged: freed \(ByteCount(freed)) of purgeable memory")
    driver.send(.purged(id, freed: ByteCount(freed)))
    // A count that is under way may have begun before the purge.
    workers[id]?.conversation?.offers.recount()
  }
}
