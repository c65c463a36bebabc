import Lifecycle
import Linux
import Policy
import Supervision

/// The functions of the daemon that a `WorkerReload` uses. Tests provide their own.
protocol WorkerReloadHost: AnyObject {
  /// How long a worker may take that has said `RELOADING=1`: its `watchdog.launch`.
  var limit: Duration { get }
  func send(_ event: Event)
  /// Before it is answered.
  func reloadHasEnded()
}

/// One reload of a worker, from the signal that asks for it to the answer. A worker that then says
/// `RELOADING=1` (sd_notify(3), as systemd's `Type=notify-reload` has it) isn't suspended before its
/// `READY=1`, for which the answer waits; of any other it is only known that it is still there. Belongs to
/// the loop's thread.
final class WorkerReload {
  /// For `RELOADING=1`, if the worker uses a channel to the daemon, and if nothing shows whether it does.
  static let patience = Duration.seconds(1)
  static let minPatience = Duration.milliseconds(200)
  /// The background task that keeps it awake meanwhile.
  static let task = "reload"

  private let id: WorkerID
  private let timers: any Timers
  private let host: any WorkerReloadHost
  private var answers: [(Answer) -> Void] = []
  /// It has said `RELOADING=1`.
  private var isAnnounced = false
  private var deadline: EventLoop.Token?
  private var isOver = false

  init(_ id: WorkerID, timers: any Timers, host: any WorkerReloadHost) {
    self.id = id
    self.timers = timers
    self.host = host
  }

  /// The signal was sent.
  ///
  /// - Parameter announces: its readiness is what it says itself.
  func begin(by signal: String, announces: Bool) {
    host.send(.taskBegan(id, task: Self.task, limit: host.limit))
    allow(announces ? Self.patience : Self.minPatience) { [id] in
      Answer(.done, "\(id) was sent \(signal) to reload")
    }
  }

  /// Called once, when it has ended.
  func whenDone(_ answer: @escaping (Answer) -> Void) { answers.append(answer) }

  private func allow(_ time: Duration, _ then: @escaping () -> Answer) {
    if let deadline { timers.cancel(deadline) }
    deadline = timers.after(time) { [weak self] in self?.conclude(then()) }
  }

  private func conclude(_ answer: Answer) {
    guard !isOver else { return }
    isOver = true
    host.reloadHasEnded()
    if let deadline { timers.cancel(deadline) }
    host.send(.taskEnded(id, task: Self.task))
    for each in answers { each(answer) }
    answers = []
  }

  /// `RELOADING=1`.
  func isReloading() {
    guard !isAnnounced else { return }
    isAnnounced = true
    let limit = host.limit
    allow(limit) { [id] in
      Answer(
        .failed,
        "\(id) is reloading (RELOADING=1) and was not ready again within \(limit.spoken), its "
          + "watchdog.launch")
    }
  }

  /// `READY=1`.
  func isReady() {
    if isAnnounced { conclude(Answer(.done, "\(id) has reloaded and is ready")) }
  }

  /// It has ended over it.
  ///
  /// - Parameter why: its end's cause, and what it last wrote.
  func workerHasEnded(_ why: String) {
    conclude(Answer(.failed, "\(id) ended while it reloaded: \(why)"))
  }
}
