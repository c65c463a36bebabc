import Control
import Hibernation
import Lifecycle
import Policy

/// The verbs of the control socket. It carries out a client's request, or passes it to the
/// component that does, and answers it when that is done. It belongs to the event loop's thread.
struct ControlService {
  let following: EventFollowing
  let status: StatusReporter
  /// Overrides the policies' way to resume.
  let resumeOverride: ResumePreference?
  let jetsam: JetsamKeeper
  let loopReturn: LoopReturn
  let workers: WorkerVerbs
  let externals: ExternalAdoption
  let reloads: WorkerReloads
  let ending: DaemonEnd
  let reloader: ConfigurationReloader
  let examination: CoalescedProbe<ExaminationProgram.Outcome>
  let jobs: LoopJobs

  private var wrappers: RegisteredWrappers { status.wrappers }

  /// How long to wait for a wrapper's report or reasons. If it doesn't answer by then, its last
  /// report counts, and the worker is reported without reasons.
  static let statusTimeout = Duration.seconds(2)
  /// How long to wait for a wrapper, which may take a while to end gracefully or to write its
  /// memory.
  private static let wrapperTimeout = Duration.seconds(600)

  /// Handles a request. `respond` is called once, now or later. An answer to a client that has
  /// disconnected is dropped.
  func handle(
    _ request: ControlRequest, from client: ClientID,
    then respond: @escaping (ControlResponse) -> Void
  ) {
    var isAnswered = false  // The component may answer twice.
    let call = ControlCall(request: request) { response in
      if !isAnswered { respond(response) }
      isAnswered = true
    }
    if request.verb == .events, request.follow == true {
      following.follow(client, request.id, worker: request.worker)
    }
    if request.verb == .register {
      let refusal = wrappers.register(request.wrapper, from: client)
      return call.answer(refusal == nil ? .done : .badRequest, refusal ?? "known")
    }
    carryOut(call)
  }

  /// The client's connection has ended.
  func didDisconnect(_ client: ClientID) {
    following.forget(client)
    wrappers.didDisconnect(client)
  }

  private func carryOut(_ call: ControlCall) {
    let request = call.request
    if let expires = request.expires, status.facts.clock.now.nanoseconds > expires {
      return call.answer(
        .refused,
        "`\(request.verb.rawValue)` came too late: the client has stopped waiting")
    }
    let isWrapped = wrappers.isWrapped(request.worker)
    switch request.verb {
    case .ps: status.report(request, then: call.respond)
    case .status: reportStatus(call)
    case .jetsam: showJetsam(call)
    case .events: locateJournal(call)
    case .explain where isWrapped, .policy where isWrapped: relay(call)
    case .explain: explain(call)
    case .explainSavings: explainSavings(call)
    case .policy: policyInForce(call)
    case .run: runWorker(call)
    case .remove, .removeRunning: removeWorker(call)
    case .adopt: externals.adopt(call)
    case .release: externals.release(call)
    case .previewAdoption: previewAdoption(call)
    case .reloadWorker: reloads.reloadWorker(call)
    case .setPressure: setPressure(call)
    case .doctor: doctor(call)
    case .reload, .previewReload: reload(call)
    case .start, .restart, .stop, .foreground, .background, .suspend, .hibernate, .wake, .terminate,
      .warn, .trim, .fill, .shadow, .enforce, .protect, .unprotect:
      askEngine(call)
    case .register, .shutdown, .leave: break  // `handle` and `end(by:)` handle them.
    }
  }

  private func reportStatus(_ call: ControlCall) {
    let request = call.request
    guard wrappers.isWrapped(request.worker) else {
      return status.report(request, then: call.respond)
    }
    // The answer is the wrapper's report now. If the wrapper can't be asked, it is the wrapper's
    // last report.
    wrappers.relay(request, timeout: Self.statusTimeout) { [status] answer in
      // A wrapped worker has no processes that this daemon manages.
      var kept = status.report(request, nil)
      if answer.result == .done, let workers = answer.workers { kept.workers = workers }
      call.respond(kept)
    }
  }

  private func askEngine(_ call: ControlCall) {
    let request = call.request
    guard let verb = Request.Verb(rawValue: request.verb.rawValue), let name = request.worker else {
      return call.answer(.badRequest, "`\(request.verb.rawValue)` needs a worker")
    }
    // This daemon, not the wrapper, terminates wrapped workers for lack of memory.
    if wrappers.isWrapped(name), verb != .protect, verb != .unprotect { return relay(call) }
    workers.ask(verb, WorkerID(name), for: call) { carryOut(call) }
  }

  private func relay(_ call: ControlCall) {
    wrappers.relay(call.request, timeout: Self.wrapperTimeout, then: call.respond)
  }
}
