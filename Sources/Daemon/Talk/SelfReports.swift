import Lifecycle
import Policy
import Supervision
import WorkerProtocol

// These functions handle a worker's reports about itself, over either channel, and pass them to the
// engine.
extension WorkerConversation {
  private var id: WorkerID { handle.id }

  func apply(_ message: NotifyMessage) {
    switch message {
    case .ready:
      guard let worker = handle.worker else { return }
      worker.readiness?.didReportReady()
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
      notifications?.recordSign()
      guard let worker = handle.worker else { return }
      conversations.setWatchdog(of: worker, to: interval)
    case .watchdog: notifications?.recordSign()
    // Services for systemd send these. Nothing here depends on them.
    case .stopping, .mainProcess: break
    }
  }

  /// Wakes a worker that asked for time too late: it sent the request while it still ran, just
  /// after `willSuspend`, and fell asleep before the request was read. Its work was interrupted.
  /// The worker continues now, and sleeps when the work is done.
  private func lateInhibit(_ what: String) {
    guard let state = handle.state,
      state == .suspending || state == .hibernating || state.sleeps
    else { return }
    handle.send(.wakeNeeded(id, "\(what), sent while it was being suspended"))
  }

  /// Reports that the worker itself has answered, perhaps too late: the watchdog needs the answer.
  private func didShed() {
    if !answersItself {
      answersItself = true
      handle.sendChannels()
    }
    handle.send(.shedAnswered(id))
  }

  /// Handles `FDSTORE=1` and `FDSTOREREMOVE=1`.
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

  /// Keeps the worker's snapshot.
  ///
  /// - Returns: what is wrong with it, for the worker; nil if nothing is.
  func keep(_ snapshot: WorkerMessage.Snapshot) -> String? {
    let (snapshots, timers) = (conversations.snapshots, conversations.timers)
    let name = handle.id.name
    do throws(Refusal) {
      if let wait = try snapshots.keep(snapshot, of: name, at: timers.now) {
        timers.after(wait) { snapshots.writeWaiting(of: name, at: timers.now) }
      }
      return nil
    } catch { return error.text }
  }
}

extension WorkerHandle {
  /// Reports to the engine whether the worker can be asked to free memory, and whether it is
  /// expected to answer.
  func sendChannels() { if let worker { send(worker.channelsChanged) } }
}
