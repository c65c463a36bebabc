import Lifecycle
import Policy
import WorkerProtocol

/// The messages about a worker's own life cycle over `DORMOUSE_WORKER_SOCKET`: before it is suspended or ended,
/// when its task's time is over, and when it runs again. Belongs to the loop's thread, and to a
/// `WorkerConversation`.
struct LifecycleMessages {
  /// `willSuspend` waits this long for an answer.
  static let patienceBeforeSleep = Duration.milliseconds(250)
  /// From an answer to a thread that waits again: a worker that is found at work isn't put to sleep.
  static let settling = Duration.milliseconds(10)

  private unowned let conversation: WorkerConversation
  private let timers: any Timers
  private let handle: WorkerHandle

  init(_ conversation: WorkerConversation, to handle: WorkerHandle, timers: any Timers) {
    self.conversation = conversation
    self.handle = handle
    self.timers = timers
  }

  private var engineCause: String {
    handle.driver.state.snapshot(of: handle.id)?.cause.sentence ?? ""
  }

  // MARK: sleep

  /// It will be suspended. `action` is called when it has had its moment; at once if it isn't connected, and
  /// not at all if it has ended meanwhile.
  func willSuspend(then action: @escaping () -> Void) {
    let goOn = { [handle, weak conversation] in
      if conversation?.isOver == false, handle.worker?.hasExited == false,
        handle.state == .suspending
      {
        action()
      }
    }
    let number = conversation.ask(
      .willSuspend, within: Self.patienceBeforeSleep, patience: Self.patienceBeforeSleep
    ) { [timers] reply in
      switch reply {
      case .answered: timers.after(Self.settling, do: goOn)
      case .silent: goOn()
      case .runEnded: break
      }
    }
    if number == nil { action() }
  }

  /// It runs again. Called before the engine gets that, because the engine may send more messages.
  ///
  /// - Parameter why: a clause, if it isn't the engine's cause.
  func didResume(after asleep: Duration, why: String?) {
    let cause = why ?? engineCause
    conversation.say {
      .didResume(id: $0, asleepSeconds: asleep.milliseconds, cause: cause)
    }
    conversation.sayPressureIfChanged()
  }

  // MARK: states and levels

  func didEnterForeground() { conversation.say { .didEnterForeground(id: $0) } }

  /// For a running worker; a sleeping one gets the level when it is woken.
  func pressureChanged() { conversation.sayPressure() }

  // MARK: ends

  /// Its task's time is over; the engine waits for the task a moment longer.
  func taskExpired(_ task: String) {
    let moment = Engine.lastWordsOfTask
    _ = conversation.ask(.taskExpired(task: task), within: moment, patience: moment) {
      [handle] reply in
      if reply == .answered { handle.send(.taskEnded(handle.id, task: task)) }
    }
  }

  /// It will be ended: `action` follows its answer, or half of `grace`, where it hasn't ended by then.
  ///
  /// - Returns: whether there was a connection; else `action` isn't called.
  func willTerminate(within grace: Duration, then action: @escaping () -> Void) -> Bool {
    let number = conversation.ask(
      .willTerminate(reason: engineCause), within: grace, patience: grace / 2
    ) { [handle] reply in
      guard reply != .runEnded, let worker = handle.worker else { return }
      if !worker.hasExited, !worker.isKilled { action() }
    }
    return number != nil
  }
}
