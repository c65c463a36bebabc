import Control
import Lifecycle
import Linux
import Policy
import Supervision

// `dormouse reload NAME`: a worker is told to read its own configuration again, by its `reload_signal`.
// Sleepers are woken for it. One that then says `RELOADING=1` (sd_notify(3), as systemd's
// `Type=notify-reload` has it) isn't suspended before its `READY=1`, for which the answer waits; of any
// other it is only known that it is still there.

/// One reload under way.
struct WorkerReload {
  var answers: [(Answer) -> Void]
  /// It has said `RELOADING=1`.
  var isAnnounced = false
  var deadline: EventLoop.Token?

  /// For `RELOADING=1`, where the worker talks with us, and where nothing tells whether it does.
  static let patience = Duration.seconds(1)
  static let minPatience = Duration.milliseconds(200)
  /// The background task that keeps it awake meanwhile.
  static let task = "reload"
}

extension Daemon {
  func reloadWorker(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    func answer(_ result: ControlResponse.Result, _ text: String) {
      respond(ControlResponse(id: request.id, result: result, text: text))
    }
    guard let name = request.worker else {
      return answer(.badRequest, "`reloadWorker` needs a worker")
    }
    let id = WorkerID(name)
    if isWrapped(name) {
      return answer(.refused, "\(name) is wrapped, and nothing says how it would be reloaded")
    }
    guard let runtime = workers[id], let state = engine.state(of: id) else {
      return answer(.unknownWorker, "there is no worker named \(name)")
    }
    guard let signal = runtime.configuration.reloadSignal else {
      return answer(
        .refused,
        "\(name) has no `reload_signal` in the configuration; `dormouse restart \(name)` starts it anew"
      )
    }
    if isEnding || isLeaving { return answer(.refused, "the daemon is ending") }
    let told = { (outcome: Answer) in answer(.init(outcome.code), outcome.text) }
    switch state {
    case .terminated where adopting[id] == nil:
      answer(.refused, "\(name) is not running; start it with `dormouse start \(name)`")
    case .launching, .terminating: answer(.refused, "\(name) is \(state.spoken)")
    case .foreground, .background: tell(runtime, signal, then: told)
    default:
      hibernation.prioritize(name)
      self.request(.wake, id) { [unowned self] woken in
        guard woken.code == .done else { return told(woken) }
        tell(runtime, signal, then: told)
      }
    }
  }

  private func tell(
    _ runtime: WorkerRuntime, _ signal: Int32, then answer: @escaping (Answer) -> Void
  ) {
    let id = runtime.id
    if runtime.reloading != nil {
      runtime.reloading?.answers.append(answer)
      return
    }
    guard let process = runtime.process, !runtime.hasExited else {
      return answer(Answer(.failed, "\(id) has just ended"))
    }
    let pid = process.identity.pid
    let named = SignalName.text(signal)
    guard (try? ProcessStatus.read(pid))?.catches(signal) == true else {
      return answer(
        Answer(
          .refused,
          "\(id) doesn't handle \(named), which would end or pass over its first process, pid \(pid)"
        ))
    }
    do throws(SystemCallError) {
      try process.signal(signal)
    } catch { return answer(Answer(.failed, "\(id) couldn't be sent \(named): \(error)")) }
    log(.info, "\(id): told to reload by \(named)")
    runtime.reloading = WorkerReload(answers: [answer])
    let limit = runtime.configuration.policy.watchdog.launch
    driver.send(.taskBegan(id, task: WorkerReload.task, limit: limit))
    let talks = runtime.configuration.readiness == .notify
    allow(runtime, talks ? WorkerReload.patience : WorkerReload.minPatience) {
      Answer(.done, "\(id) was told to reload (\(named))")
    }
  }

  private func allow(_ runtime: WorkerRuntime, _ time: Duration, _ then: @escaping () -> Answer) {
    if let deadline = runtime.reloading?.deadline { loop.cancel(deadline) }
    runtime.reloading?.deadline = loop.after(time) { [unowned self] in
      conclude(runtime, then())
    }
  }

  private func conclude(_ runtime: WorkerRuntime, _ answer: Answer) {
    guard let reload = runtime.reloading else { return }
    runtime.reloading = nil
    if let deadline = reload.deadline { loop.cancel(deadline) }
    driver.send(.taskEnded(runtime.id, task: WorkerReload.task))
    for each in reload.answers { each(answer) }
  }

  /// It says how far it is.
  func reloadAdvanced(_ runtime: WorkerRuntime, _ message: NotifyMessage) {
    guard let reload = runtime.reloading else { return }
    let id = runtime.id
    if message == .reloading, !reload.isAnnounced {
      runtime.reloading?.isAnnounced = true
      let limit = runtime.configuration.policy.watchdog.launch
      allow(runtime, limit) {
        Answer(
          .failed,
          "\(id) is reloading (RELOADING=1), and wasn't ready again within \(limit.spoken), its "
            + "watchdog.launch")
      }
    } else if message == .ready, reload.isAnnounced {
      conclude(runtime, Answer(.done, "\(id) has reloaded, and is ready"))
    }
  }

  /// It has ended over it.
  func reloadEnded(_ runtime: WorkerRuntime, _ cause: Cause) {
    guard runtime.reloading != nil else { return }
    conclude(
      runtime,
      Answer(
        .failed,
        "\(runtime.id) ended while it reloaded: \(cause.sentence)"
          + restarts.lastWords(of: runtime.id)
      ))
  }
}
