import Lifecycle
import Policy
import Supervision

/// A worker's reports of itself, over either channel, and what they mean for the engine. One for one run.
final class SelfReports {
  private let id: WorkerID
  private let host: any ConversationHost
  /// Its last reported status.
  private(set) var statusText: String?
  /// It has reported by itself that it freed memory (`X_DORMOUSE_DONE=1`), so it is expected to answer.
  private(set) var answersItself = false

  init(_ id: WorkerID, _ host: any ConversationHost) {
    self.id = id
    self.host = host
  }

  func didReceive(_ message: NotifyMessage) {
    switch message {
    case .ready: host.saidReady()
    case .status(let text): statusText = text
    case .shedDone: didShed()
    case .hold(let holds):
      host.send(.hold(id, holds))
      if holds { lateInhibit("its request not to be suspended") }
    case .taskBegan(let task, let limit):
      host.send(.taskBegan(id, task: task, limit: limit))
      if limit != .zero { lateInhibit("its background task \(task)") }
    case .taskEnded(let task): host.send(.taskEnded(id, task: task))
    case .extendTimeout(let time): host.send(.extendTimeout(id, time))
    case .reloading: host.saidReloading()
    case .watchdogTrigger: host.send(.watchdogTriggered(id))
    case .watchdogInterval(let interval): host.saidWatchdogInterval(interval)
    // A sign of life, which `NotificationChannel` keeps.
    case .watchdog: break
    // systemd's services send it; nothing here depends on it.
    case .stopping, .mainProcess: break
    }
  }

  /// The worker sent it while it still ran, just after `willSuspend`, and fell asleep before it was read. Its
  /// work was interrupted, so the worker continues now, and sleeps when the work is done.
  private func lateInhibit(_ what: String) {
    guard let state = host.state, state == .suspending || state.sleeps else { return }
    host.send(.wakeNeeded(id, "\(what), sent while it was being suspended"))
  }

  /// The worker itself answered, perhaps too late: the watchdog needs the answer.
  private func didShed() {
    if !answersItself {
      answersItself = true
      host.channelsChanged()
    }
    host.send(.shedAnswered(id))
  }
}
