import Lifecycle
import Policy
import Supervision
import WorkerProtocol

/// A worker's reports of itself, over either channel, and what they mean for the engine. One for one run.
final class SelfReports {
  private let worker: WorkerHandle
  private let conversations: WorkerConversations
  /// Its last reported status.
  private(set) var statusText: String?
  /// It has reported by itself that it freed memory (`X_DORMOUSE_DONE=1`), so it is expected to answer.
  private(set) var answersItself = false

  init(of worker: WorkerHandle, _ conversations: WorkerConversations) {
    self.worker = worker
    self.conversations = conversations
  }

  private var id: WorkerID { worker.id }

  func didReceive(_ message: NotifyMessage) {
    switch message {
    case .ready:
      guard let runtime = worker.runtime else { return }
      runtime.readiness?.saidReady()
      conversations.reloads.didBecomeReady(id)
    case .status(let text): statusText = text
    case .shedDone: didShed()
    case .hold(let holds):
      worker.send(.hold(id, holds))
      if holds { lateInhibit("its request not to be suspended") }
    case .taskBegan(let task, let limit):
      worker.send(.taskBegan(id, task: task, limit: limit))
      if limit != .zero { lateInhibit("its background task \(task)") }
    case .taskEnded(let task): worker.send(.taskEnded(id, task: task))
    case .extendTimeout(let time): worker.send(.extendTimeout(id, time))
    case .reloading: conversations.reloads.didAnnounceReload(id)
    case .watchdogTrigger: worker.send(.watchdogTriggered(id))
    case .watchdogInterval(let interval):
      guard let runtime = worker.runtime else { return }
      conversations.watchdogs.setWatchdog(of: runtime, to: interval)
    // A sign of life, which `NotificationChannel` keeps.
    case .watchdog: break
    // systemd's services send it; nothing here depends on it.
    case .stopping, .mainProcess: break
    }
  }

  /// The worker sent it while it still ran, just after `willSuspend`, and fell asleep before it was read. Its
  /// work was interrupted, so the worker continues now, and sleeps when the work is done.
  private func lateInhibit(_ what: String) {
    guard let state = worker.state, state == .suspending || state.sleeps else { return }
    worker.send(.wakeNeeded(id, "\(what), sent while it was being suspended"))
  }

  /// The worker itself answered, perhaps too late: the watchdog needs the answer.
  private func didShed() {
    if !answersItself {
      answersItself = true
      worker.sendChannels()
    }
    worker.send(.shedAnswered(id))
  }

  /// `FDSTORE=1`, `FDSTOREREMOVE=1`.
  func store(_ request: StoreRequest) {
    guard let runtime = worker.runtime else { return }
    let stored =
      runtime.stored
      ?? DescriptorStoring(
        worker, timers: conversations.timers, workers: conversations.workers,
        returning: conversations.services.loopReturn.relay)
    runtime.stored = stored
    stored.keep(request)
  }

  /// - Returns: what is wrong with it, for the worker.
  func keep(_ snapshot: WorkerMessage.Snapshot) -> String? {
    let (snapshots, timers) = (conversations.snapshots, conversations.timers)
    let name = worker.id.name
    do throws(SnapshotStore.Refusal) {
      if let wait = try snapshots.keep(snapshot, of: name, at: timers.now) {
        timers.after(wait) { snapshots.writeWaiting(of: name, at: timers.now) }
      }
      return nil
    } catch { return error.text }
  }
}

extension WorkerHandle {
  /// Whether it can be asked to free memory, or is expected to answer, has changed.
  func sendChannels() { if let runtime { send(runtime.channelsChanged) } }
}
