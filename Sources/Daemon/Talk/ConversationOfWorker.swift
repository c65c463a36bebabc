import Lifecycle
import Linux
import Policy
import Supervision
import WorkerProtocol

/// What a worker's `WorkerConversation` gets of the daemon, for one run.
private final class ConversationOfWorker: ConversationHost {
  private unowned let daemon: Daemon
  private weak var runtime: WorkerUnit?
  private let id: WorkerID

  init(_ daemon: Daemon, _ runtime: WorkerUnit) {
    self.daemon = daemon
    self.runtime = runtime
    id = runtime.id
  }

  var state: WorkerState? { daemon.engine.state(of: id) }
  var cause: String { daemon.engine.snapshot(of: id)?.cause.sentence ?? "" }
  var pressure: PressureLevel { daemon.engine.pressure }
  var purgeable: ByteCount? { daemon.engine.snapshot(of: id)?.purgeable }
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

  func send(_ event: Event) { daemon.driver.send(event) }
  func log(_ priority: DaemonLog.Priority, _ text: String) {
    daemon.log(priority, "\(id): \(text)")
  }
  func channelsChanged() { if let runtime { daemon.driver.send(runtime.channelsChanged) } }
  func removeSocketFile(_ path: String) { daemon.socketFiles.remove(path) }

  func saidReady() {
    guard let runtime else { return }
    runtime.readiness?.saidReady()
    daemon.reloads.isReady(id)
  }

  func saidReloading() { daemon.reloads.isReloading(id) }

  func saidWatchdogInterval(_ interval: Duration) {
    if let runtime { daemon.senses.watchdogs.setWatchdog(of: runtime, to: interval) }
  }

  func store(_ request: StoreRequest) {
    guard let runtime else { return }
    let stored =
      runtime.stored
      ?? DescriptorStoring(
        daemon.loop, StoringOfWorker(daemon, runtime), returning: daemon.loopReturn.relay)
    runtime.stored = stored
    stored.keep(request)
  }

  func keep(_ snapshot: WorkerMessage.Snapshot) -> String? {
    do throws(SnapshotStore.Refusal) {
      if let wait = try daemon.snapshots.keep(snapshot, of: id.name, at: EventLoop.now) {
        daemon.loop.after(wait) { [daemon, id] in
          daemon.snapshots.writeWaiting(of: id.name, at: EventLoop.now)
        }
      }
      return nil
    } catch { return error.text }
  }

  func saveOffers() {
    if let runtime, let state { daemon.saveRecord(runtime, state: state) }
  }
}

/// What the daemon does over the conversations of its workers' runs. Belongs to the loop's thread.
final class WorkerConversations {
  private unowned let daemon: Daemon
  private let numbers = MessageNumbers()

  init(_ daemon: Daemon) { self.daemon = daemon }

  /// A worker's run begins to have channels; nothing is heard yet.
  func makeConversation(_ runtime: WorkerUnit, over channels: WorkerChannels) {
    let loop = daemon.loop
    runtime.conversation = WorkerConversation(
      runtime.id, channels, loop, loop, numbers, ConversationOfWorker(daemon, runtime))
  }

  // MARK: what it hears of its life

  /// Calls `action` when the worker knows that it will be stopped, and has had its moment.
  func whenTold(_ runtime: WorkerUnit, _ action: @escaping () -> Void) {
    guard let conversation = runtime.conversation else { return action() }
    conversation.lifecycle.willSuspend(then: action)
  }

  /// Before the engine hears of it. `why`: a clause, where it isn't the engine's cause.
  func tellAwake(_ runtime: WorkerUnit, why: String? = nil) {
    let asleep = runtime.asleepSince.map { EventLoop.now - $0 } ?? .zero
    runtime.asleepSince = nil
    runtime.conversation?.lifecycle.didResume(after: asleep, why: why)
  }

  func tellPressure() {
    for runtime in daemon.workers.values where daemon.engine.state(of: runtime.id)?.runs == true {
      runtime.conversation?.lifecycle.pressureChanged()
    }
  }

  func expireTask(_ id: WorkerID, _ task: String) {
    daemon.log(.notice, "\(id): background task \(task) is out of time")
    daemon.workers[id]?.conversation?.lifecycle.taskExpired(task, of: id)
  }

  // MARK: purgeable memory

  func findOffersAgain(_ record: WorkerRecord, _ runtime: WorkerUnit) {
    // What has ended sleeps on nowhere.
    guard !record.purgeable.isEmpty, let tree = try? runtime.process?.tree() else { return }
    runtime.conversation?.offers.findAgain(record.purgeable, in: tree)
  }

  func purge(_ id: WorkerID) {
    guard let purge = daemon.workers[id]?.conversation?.offers.purge else {
      return daemon.driver.send(.purgeFailed(id, "it offers no purgeable memory"))
    }
    let done = daemon.loopReturn.callback { [unowned self] in purged(id, $0) }
    // A worker whose daemon has gone takes slots that are being purged for its own as soon as it runs:
    // what wakes it waits for this (`afterWhatIsUnderWay`).
    daemon.mechanics.submit(about: id.name) { done(purge()) }
  }

  private func purged(_ id: WorkerID, _ freed: Int64) {
    guard freed > 0 else {
      return daemon.driver.send(
        .purgeFailed(id, "all of its purgeable memory is in use"))
    }
    daemon.log(.info, "\(id): purged: freed \(ByteCount(freed)) of purgeable memory")
    daemon.driver.send(.purged(id, freed: ByteCount(freed)))
  }
}
