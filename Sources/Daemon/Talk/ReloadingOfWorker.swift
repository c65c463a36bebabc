import Control
import Lifecycle
import Linux
import Policy
import Supervision

// `dormouse reload NAME`: a worker is asked to read its own configuration again, by its `reload_signal`.
// Sleepers are woken for it.

/// What a `WorkerReload` gets of the daemon.
private final class ReloadingOfWorker: WorkerReloadHost {
  private unowned let daemon: Daemon
  private let runtime: WorkerRuntime

  init(_ daemon: Daemon, _ runtime: WorkerRuntime) {
    self.daemon = daemon
    self.runtime = runtime
  }

  var limit: Duration { runtime.configuration.policy.watchdog.launch }
  func send(_ event: Event) { daemon.driver.send(event) }
  func reloadHasEnded() { runtime.reloading = nil }
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
    case .terminated where !survivors.isAdopting(id):
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
    if let reloading = runtime.reloading { return reloading.whenDone(answer) }
    guard let process = runtime.process, !runtime.hasExited else {
      return answer(Answer(.failed, "\(id) has just ended"))
    }
    let pid = process.identity.pid
    let named = SignalName.text(signal)
    // What can't be read has just ended.
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
    let reloading = WorkerReload(id, loop, ReloadingOfWorker(self, runtime))
    runtime.reloading = reloading
    reloading.whenDone(answer)
    reloading.begin(by: named, announces: runtime.configuration.readiness == .notify)
  }

  func reloadEnded(_ runtime: WorkerRuntime, _ cause: Cause) {
    runtime.reloading?.workerHasEnded(cause.sentence + restarts.lastWords(of: runtime.id))
  }
}
