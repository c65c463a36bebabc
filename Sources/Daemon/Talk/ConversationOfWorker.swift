import Lifecycle
import Linux
import Policy
import Supervision
import WorkerProtocol

/// What a worker's `WorkerConversation` gets of the daemon, for one run.
private final class ConversationOfWorker: ConversationHost {
  private let worker: WorkerHandle
  private unowned let conversations: WorkerConversations

  init(_ worker: WorkerHandle, _ conversations: WorkerConversations) {
    self.worker = worker
    self.conversations = conversations
  }

  private var id: WorkerID { worker.id }
  private var runtime: WorkerUnit? { worker.runtime }
  private var parts: WorkerConversations.Parts { conversations.parts }
  private var services: Services { parts.services }

  var state: WorkerState? { worker.state }
  var cause: String { parts.driver.state.snapshot(of: id)?.cause.sentence ?? "" }
  var pressure: PressureLevel { parts.driver.state.pressure }
  var purgeable: ByteCount? { parts.driver.state.snapshot(of: id)?.purgeable }
  var hasProcess: Bool { runtime?.process != nil }
  var hasExited: Bool { runtime?.hasExited ?? true }
  var isKilled: Bool { runtime?.isKilled ?? true }
  var isShedding: Bool { runtime?.shed != nil }

  func owns(_ pid: Int32) -> Bool { runtime?.process?.owns(pid) == true }

  func ownsSender(_ pid: Int32) -> Bool {
    guard let process = runtime?.process else { return false }
    // Ended, and not waited for yet: what it has sent last counts. A process that can't be read has been
    // waited for, and isn't the worker's.
    return (try? ProcessStat.read(pid))?.identity == process.identity || process.owns(pid)
  }

  func send(_ event: Event) { worker.send(event) }
  func log(_ priority: DaemonLog.Priority, _ text: String) { worker.log(priority, text) }
  func channelsChanged() { if let runtime { worker.send(runtime.channelsChanged) } }
  func removeSocketFile(_ path: String) { services.socketFiles.remove(path) }

  func saidReady() {
    guard let runtime else { return }
    runtime.readiness?.saidReady()
    parts.reloads.didBecomeReady(id)
  }

  func saidReloading() { parts.reloads.didAnnounceReload(id) }

  func saidWatchdogInterval(_ interval: Duration) {
    if let runtime { parts.watchdogs.setWatchdog(of: runtime, to: interval) }
  }

  func store(_ request: StoreRequest) {
    guard let runtime else { return }
    let stored =
      runtime.stored
      ?? DescriptorStoring(
        worker, timers: services.loop, workers: parts.workers,
        returning: services.loopReturn.relay)
    runtime.stored = stored
    stored.keep(request)
  }

  func keep(_ snapshot: WorkerMessage.Snapshot) -> String? {
    do throws(SnapshotStore.Refusal) {
      if let wait = try parts.snapshots.keep(snapshot, of: id.name, at: EventLoop.now) {
        services.loop.after(wait) { [snapshots = parts.snapshots, id] in
          snapshots.writeWaiting(of: id.name, at: EventLoop.now)
        }
      }
      return nil
    } catch { return error.text }
  }

  func saveOffers() {
    if let runtime, let state { parts.recordWriter.save(runtime, state: state) }
  }
}

/// The daemon's operations on the conversations of its workers' runs. Belongs to the loop's thread.
final class WorkerConversations {
  struct Parts {
    let services: Services
    let driver: EngineDriver
    let workers: WorkerRegistry
    let reloads: WorkerReloads
    let watchdogs: WatchdogReporter
    let snapshots: SnapshotKeeper
    let recordWriter: WorkerRecordWriter
  }

  fileprivate let parts: Parts
  private let numbers = MessageNumbers()

  init(_ parts: Parts) { self.parts = parts }

  private var services: Services { parts.services }

  /// A worker's run begins to have channels; nothing is read yet.
  func makeConversation(_ runtime: WorkerUnit, over channels: WorkerChannels) {
    let loop = services.loop
    let worker = WorkerHandle(runtime: runtime, driver: parts.driver, log: services.log)
    runtime.conversation = WorkerConversation(
      runtime.id, channels: channels, timers: loop, watches: loop, numbers: numbers,
      host: ConversationOfWorker(worker, self))
  }

  // MARK: messages about its life cycle

  func sendPressure() {
    for runtime in parts.workers.values where parts.driver.state.state(of: runtime.id)?.runs == true
    {
      runtime.conversation?.lifecycle.pressureChanged()
    }
  }

  func expireTask(_ id: WorkerID, _ task: String) {
    services.log(.notice, "\(id): background task \(task) is out of time")
    parts.workers[id]?.conversation?.lifecycle.taskExpired(task, of: id)
  }

  // MARK: purgeable memory

  func findOffersAgain(_ record: WorkerRecord, _ runtime: WorkerUnit) {
    // A worker that has ended doesn't sleep on.
    guard !record.purgeable.isEmpty, let tree = try? runtime.process?.tree() else { return }
    runtime.conversation?.offers.findAgain(record.purgeable, in: tree)
  }

  func purge(_ id: WorkerID) {
    guard let purge = parts.workers[id]?.conversation?.offers.purge else {
      return parts.driver.send(.purgeFailed(id, "it offers no purgeable memory"))
    }
    let done = services.loopReturn.callback { [unowned self] in purged(id, $0) }
    // A worker whose daemon has ended counts slots that are being purged as its own as soon as it runs. So the
    // wake waits for this (`afterWhatIsUnderWay`).
    services.mechanics.submit(about: id.name) { done(purge()) }
  }

  private func purged(_ id: WorkerID, _ freed: Int64) {
    guard freed > 0 else {
      return parts.driver.send(
        .purgeFailed(id, "all of its purgeable memory is in use"))
    }
    parts.workers[id]?.measuring.memoryMoves()
    services.log(.info, "\(id): purged: freed \(ByteCount(freed)) of purgeable memory")
    parts.driver.send(.purged(id, freed: ByteCount(freed)))
  }
}
