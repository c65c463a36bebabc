import Control
import Hibernation
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// Handles `dormouse reload NAME`, which asks a worker to read its own configuration again, by its
/// `reload_signal`. A sleeping worker is woken for it. If the worker then sends `RELOADING=1`
/// (sd_notify(3), as for systemd's `Type=notify-reload`), it isn't suspended before its `READY=1`,
/// and the answer waits for that. For any other worker, the answer only says that the worker is
/// still there. It belongs to the event loop's thread.
final class WorkerReloads {
  /// How long to wait for `RELOADING=1`: `announcementTimeout` if the worker's readiness is
  /// `notify`, else `minAnnouncementTimeout`.
  static let announcementTimeout = Duration.seconds(1)
  static let minAnnouncementTimeout = Duration.milliseconds(200)
  /// The background task that keeps the worker awake during the reload.
  static let task = "reload"

  private let requests: WorkerRequests
  private let wrappers: RegisteredWrappers
  private let restarts: RestartSupervisor
  private let hibernation: HibernationService
  /// The reloads that are under way. They outlive the worker's run, because the answer says how the
  /// run ended.
  private var reloads: [WorkerID: Reload] = [:]

  /// The state of a reload from the signal to the answer.
  private struct Reload {
    var answers: [(Answer) -> Void]
    /// Whether the worker has sent `RELOADING=1`.
    var isAnnounced = false
    let deadline: TimedOperation
  }

  init(
    requests: WorkerRequests, wrappers: RegisteredWrappers, restarts: RestartSupervisor,
    hibernation: HibernationService
  ) {
    self.requests = requests
    self.wrappers = wrappers
    self.restarts = restarts
    self.hibernation = hibernation
  }

  private var timers: any Timers { restarts.timers }
  private var driver: EngineDriver { restarts.driver }
  private var workers: WorkerRegistry { restarts.workers }

  func reloadWorker(_ call: ControlCall) {
    guard let name = call.request.worker else {
      return call.answer(.badRequest, "`reloadWorker` needs a worker")
    }
    let id = WorkerID(name)
    if wrappers.isWrapped(name) {
      return call.answer(.refused, "\(name) is managed by `dormouse wrap`, which can't reload it")
    }
    guard let worker = workers[id], let state = driver.state.state(of: id) else {
      return call.answerUnknown(name)
    }
    guard let signal = worker.configuration.reloadSignal else {
      return call.answer(
        .refused,
        "\(name) has no `reload_signal` in the configuration; use `dormouse restart \(name)`"
      )
    }
    if restarts.phase.isClosing { return call.answerEnding() }
    switch state {
    case .terminated where !requests.returning.isAdopting(id):
      call.answer(.refused, "\(name) is not running; start it with `dormouse start \(name)`")
    case .launching, .terminating: call.answer(.refused, "\(name) is \(state.text)")
    case .foreground, .background: signalReload(id, signal) { call.answer($0) }
    default:
      hibernation.prioritize(name)
      requests.request(.wake, id) { [weak self] woken in
        guard let self, woken.code == .done else { return call.answer(woken) }
        signalReload(id, signal) { call.answer($0) }
      }
    }
  }

  private func signalReload(
    _ id: WorkerID, _ signal: Int32, then answer: @escaping (Answer) -> Void
  ) {
    if reloads[id] != nil {
      reloads[id]?.answers.append(answer)
      return
    }
    guard let worker = workers[id], let process = worker.process, !worker.hasExited else {
      return answer(Answer(.failed, "\(id) has just ended"))
    }
    let named = Signals.text(signal)
    let pid = process.identity.pid
    // A process that can't be read has just ended.
    guard (try? ProcessStatus.read(pid))?.catches(signal) == true else {
      return answer(
        Answer(
          .refused,
          "\(id) does not handle \(named) in its first process, pid \(pid); the signal would end "
            + "it or do nothing"
        ))
    }
    do throws(SystemCallError) { try process.signal(signal) } catch {
      return answer(Answer(.failed, "\(id) can't be sent \(named): \(error)"))
    }
    restarts.log(.info, "\(id): sent \(named) to reload")
    reloads[id] = Reload(answers: [answer], deadline: TimedOperation(timers))
    driver.send(.taskBegan(id, task: Self.task, limit: limit(of: id)))
    // A worker with this readiness is known to send messages.
    let announces = worker.configuration.readiness == .notify
    conclude(
      id, after: announces ? Self.announcementTimeout : Self.minAnnouncementTimeout,
      Answer(.done, "\(id) was sent \(named) to reload"))
  }

  /// How long a worker that has sent `RELOADING=1` may need.
  private func limit(of id: WorkerID) -> Duration {
    workers[id]?.configuration.policy.watchdog.launch ?? .zero
  }

  private func conclude(_ id: WorkerID, after time: Duration, _ answer: Answer) {
    reloads[id]?.deadline.wait(time) { [weak self] in self?.conclude(id, answer) }
  }

  private func conclude(_ id: WorkerID, _ answer: Answer) {
    guard let reload = reloads.removeValue(forKey: id) else { return }
    reload.deadline.cancel()
    driver.send(.taskEnded(id, task: Self.task))
    for each in reload.answers { each(answer) }
  }

  // MARK: the worker's messages

  /// The worker has sent `RELOADING=1`.
  func didAnnounceReload(_ id: WorkerID) {
    guard reloads[id]?.isAnnounced == false else { return }
    reloads[id]?.isAnnounced = true
    let limit = limit(of: id)
    conclude(
      id, after: limit,
      Answer(
        .failed,
        "\(id) is reloading (RELOADING=1) and was not ready again within \(limit.text), its "
          + "watchdog.launch"))
  }

  /// The worker has sent `READY=1`.
  func didBecomeReady(_ id: WorkerID) {
    guard reloads[id]?.isAnnounced == true else { return }
    conclude(id, Answer(.done, "\(id) has reloaded and is ready"))
  }

  /// The worker's run has ended. The answer has the cause and the last lines that the worker wrote.
  func didEnd(_ id: WorkerID, _ cause: Cause) {
    guard reloads[id] != nil else { return }
    let reason = cause.sentence + restarts.lastOutput(of: id)
    conclude(id, Answer(.failed, "\(id) ended while it reloaded: \(reason)"))
  }
}
