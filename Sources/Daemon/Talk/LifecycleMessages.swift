import Lifecycle
import Policy
import WorkerProtocol

// The messages to a worker about its own life cycle over `DORMOUSE_WORKER_SOCKET`: before it is
// suspended or ended, when its task's time is over, and when it runs again.

extension WorkerConversation {
  /// How long `willSuspend` waits for an answer.
  static let suspendTimeout = Duration.milliseconds(250)
  /// The time between an answer and the suspension. In it the thread that answered starts to wait
  /// again: a worker that is found at work isn't put to sleep.
  static let suspendDelay = Duration.milliseconds(10)

  private var engineCause: String {
    handle.driver.state.snapshot(of: handle.id)?.cause.sentence ?? ""
  }

  // MARK: sleep

  /// Announces that the worker will be suspended. `action` is called after the worker's answer or
  /// after `suspendTimeout`; at once if the worker isn't connected; and not at all if the
  /// worker has ended meanwhile.
  func willSuspend(then action: @escaping () -> Void) {
    let goOn = { [handle, weak self] in
      if self?.isOver == false, handle.worker?.hasExited == false,
        handle.state == .suspending
      {
        action()
      }
    }
    let number = ask(
      .willSuspend, within: Self.suspendTimeout, timeout: Self.suspendTimeout
    ) { [timers = conversations.timers] reply in
      switch reply {
      case .answered: timers.after(Self.suspendDelay, do: goOn)
      case .silent: goOn()
      case .runEnded: break
      }
    }
    if number == nil { action() }
  }

  /// Reports that the worker runs again. Call this before the engine gets that event: the engine
  /// may then send more messages.
  ///
  /// - Parameter reason: a clause, if the cause isn't the engine's.
  func didResume(after asleep: Duration, reason: String?) {
    let cause = reason ?? engineCause
    send { .didResume(id: $0, asleepSeconds: asleep.roundedSeconds, cause: cause) }
    sendPressureIfChanged()
  }

  func didEnterForeground() { send { .didEnterForeground(id: $0) } }

  // MARK: ends

  /// Reports that the time of the worker's task is over. The engine waits for the task a moment
  /// longer.
  func taskExpired(_ task: String) {
    let moment = Engine.taskExpirationGrace
    _ = ask(.taskExpired(task: task), within: moment, timeout: moment) { [handle] reply in
      if reply == .answered { handle.send(.taskEnded(handle.id, task: task)) }
    }
  }

  /// Announces that the worker will be ended. `action` is called after the worker's answer, or
  /// after half of `grace`, unless the worker has ended by then.
  ///
  /// - Returns: whether there was a connection. If there was none, `action` isn't called.
  func willTerminate(within grace: Duration, then action: @escaping () -> Void) -> Bool {
    let number = ask(
      .willTerminate(reason: engineCause), within: grace, timeout: grace / 2
    ) { [handle] reply in
      guard reply != .runEnded, let worker = handle.worker else { return }
      if !worker.hasExited, !worker.isKilled { action() }
    }
    return number != nil
  }
}
