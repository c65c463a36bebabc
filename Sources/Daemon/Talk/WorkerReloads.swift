import Control
import Lifecycle
import Policy

/// A worker that is to read its own configuration again.
struct ReloadTerms {
  var state: WorkerState
  /// An earlier daemon's, which is being brought back.
  var isAdopting = false
  /// nil: the configuration names none.
  var signal: Int32?
  /// Its readiness is what it says itself.
  var announces = false
  /// How long it may take once it has said `RELOADING=1`.
  var limit = Duration.zero
}

/// What became of the signal.
enum ReloadDelivery: Hashable {
  case sent
  case hasEnded
  /// The process handles it in no way: it would end by it, or not notice.
  case isNotHandled(pid: Int32)
  case failed(String)
}

/// The functions of the daemon that `WorkerReloads` uses.
protocol ReloadsHost: AnyObject {
  /// The daemon ends, or leaves its workers.
  var isClosing: Bool { get }
  func isWrapped(_ name: String) -> Bool
  /// nil: there is no such worker.
  func reloadTerms(of id: WorkerID) -> ReloadTerms?
  /// Answered when it runs.
  func wake(_ id: WorkerID, then answer: @escaping (Answer) -> Void)
  func deliver(_ signal: Int32, to id: WorkerID) -> ReloadDelivery
  func nameOfSignal(_ signal: Int32) -> String
  func send(_ event: Event)
  /// The end of a sentence about a run that has ended.
  func lastWords(of id: WorkerID) -> String
  func log(_ priority: DaemonLog.Priority, _ text: String)
}

/// `dormouse reload NAME`: a worker is asked to read its own configuration again, by its `reload_signal`. A
/// sleeping worker is woken for it. Belongs to the loop's thread.
final class WorkerReloads {
  private let timers: any Timers
  private let host: any ReloadsHost
  /// Those that are under way. They outlive the worker's run: the answer names how it ended.
  private var reloads: [WorkerID: WorkerReload] = [:]

  init(_ timers: any Timers, _ host: any ReloadsHost) {
    self.timers = timers
    self.host = host
  }

  func reloadWorker(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    func answer(_ result: ControlResponse.Result, _ text: String) {
      respond(ControlResponse(id: request.id, result: result, text: text))
    }
    guard let name = request.worker else {
      return answer(.badRequest, "`reloadWorker` needs a worker")
    }
    let id = WorkerID(name)
    if host.isWrapped(name) {
      return answer(.refused, "\(name) is managed by `dormouse wrap`, which can't reload it")
    }
    guard let terms = host.reloadTerms(of: id) else {
      return answer(.unknownWorker, "there is no worker named \(name)")
    }
    guard let signal = terms.signal else {
      return answer(
        .refused,
        "\(name) has no `reload_signal` in the configuration; use `dormouse restart \(name)`"
      )
    }
    if host.isClosing { return answer(.refused, "the daemon is ending") }
    let reply = { (outcome: Answer) in answer(.init(outcome.code), outcome.text) }
    switch terms.state {
    case .terminated where !terms.isAdopting:
      answer(.refused, "\(name) is not running; start it with `dormouse start \(name)`")
    case .launching, .terminating: answer(.refused, "\(name) is \(terms.state.spoken)")
    case .foreground, .background: signalReload(id, signal, then: reply)
    default:
      host.wake(id) { [weak self] woken in
        guard let self, woken.code == .done else { return reply(woken) }
        signalReload(id, signal, then: reply)
      }
    }
  }

  private func signalReload(
    _ id: WorkerID, _ signal: Int32, then answer: @escaping (Answer) -> Void
  ) {
    if let reload = reloads[id] { return reload.whenDone(answer) }
    let named = host.nameOfSignal(signal)
    switch host.deliver(signal, to: id) {
    case .sent: break
    case .hasEnded: return answer(Answer(.failed, "\(id) has just ended"))
    case .isNotHandled(let pid):
      return answer(
        Answer(
          .refused,
          "\(id) does not handle \(named) in its first process, pid \(pid); the signal would end it or do nothing"
        ))
    case .failed(let why):
      return answer(Answer(.failed, "\(id) can't be sent \(named): \(why)"))
    }
    host.log(.info, "\(id): sent \(named) to reload")
    let reload = WorkerReload(id, timers: timers, host: Reload(self, id))
    reloads[id] = reload
    reload.whenDone(answer)
    reload.begin(by: named, announces: host.reloadTerms(of: id)?.announces == true)
  }

  /// What a `WorkerReload` gets of it.
  private final class Reload: WorkerReloadHost {
    private unowned let reloads: WorkerReloads
    private let id: WorkerID

    init(_ reloads: WorkerReloads, _ id: WorkerID) {
      self.reloads = reloads
      self.id = id
    }

    var limit: Duration { reloads.host.reloadTerms(of: id)?.limit ?? .zero }
    func send(_ event: Event) { reloads.host.send(event) }
    func reloadHasEnded() { reloads.reloads[id] = nil }
  }

  // MARK: what the worker does

  /// `RELOADING=1`.
  func isReloading(_ id: WorkerID) { reloads[id]?.isReloading() }

  /// `READY=1`.
  func isReady(_ id: WorkerID) { reloads[id]?.isReady() }

  func workerHasEnded(_ id: WorkerID, _ cause: Cause) {
    reloads[id]?.workerHasEnded(cause.sentence + host.lastWords(of: id))
  }
}
