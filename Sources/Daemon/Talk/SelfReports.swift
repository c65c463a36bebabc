import Lifecycle
import Policy
import Supervision
import WorkerProtocol

/// A worker's reports of itself, over either channel, and what they mean for the engine. One for one run.
final class SelfReports {
  private let handle: WorkerHandle
  private let conversations: WorkerConversations
  /// Its last reported status.
  private(set) var statusText: String?
  /// It has reported by itself that it freed memory (`X_DORMOUSE_DONE=1`), so it is expected to answer.
  private(set) var answersItself = false

  init(of handle: WorkerHandle, _ conversations: WorkerConversations) {
    self.handle = handle
    self.conversations = conversations
  }

  private var id: WorkerID { handle.id }

  func didReceive(_ message: NotifyMessage) {
    switch message {
    case .ready:
      guard let worker = handle.worker else { return }
      worker.readiness?.saidReady()
      conversations.reloads.didBecomeReady(id)
    case .status(let text): statusText = text
    case .shedDone: didShed()
    case .hold(let holds):
      handle.send(.hold(id, holds))
      if holds { lateInhibit("its request not to be suspended") }
    case .taskBegan(let task, let limit):
      handle.send(.taskBegan(id, task: task, limit: limit))
      if limit != .zero { lateInhibit("its background task \(task)") }
    case .taskEnded(let task): handle.send(.taskEnded(id, task: task))
    case .extendTimeout(let time): handle.send(.extendTimeout(id, time))
    case .reloading: conversations.reloads.didAnnounceReload(id)
    case .watchdogTrigger: handle.send(.watchdogTriggered(id))
    case .watchdogInterval(let interval):
      guard let worker = handle.worker else { return }
      conversations.watchdogs.setWatchdog(of: worker, to: interval)
    // A sign of life, which `NotificationChannel` keeps.
    case .watchdog: break
    // systemd's services send it; nothing here depends on it.
    case .stopping, .mainProcess: break
    }
  }

  /// The worker sent it while it still ran, just after `willSuspend`, and fell asleep before it was read. Its
  /// work was interrupted, so the worker continues now, and sleeps when the work is done.
  private func lateInhibit(_ what: String) {
    guard let state = handle.state, state == .suspending || state.sleeps else { return }
    handle.send(.wakeNeeded(id, "\(what), sent while it was being suspended"))
  }

  /// The worker itself answered, perhaps too late: the watchdog needs the answer.
  private func didShed() {
    if !answersItself {
      answersItself = true
      handle.sendChannels()
    }
    handle.send(.shedAnswered(id))
  }

  /// `FDSTORE=1`, `FDSTOREREMOVE=1`.
  func store(_ request: StoreRequest) {
    guard let worker = handle.worker else { return }
    let stored =
      worker.stored
      ?? DescriptorStoring(
        handle, timers: conversations.timers, workers: conversations.workers,
        returning: conversations.services.loopReturn.relay)
    worker.stored = stored
    stored.keep(request)
  }

  /// - Returns: what is wrong with it, for the worker.
  func keep(_ snapshot: WorkerMessage.Snapshot) -> String? {
    let (snapshots, timers) = (conversations.snapshots, conversations.timers)
    let name = handle.id.name
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
  func sendChannels() { if let worker { send(worker.channelsChanged) } }
}
