import Control
import Lifecycle
import Policy
import PolicyFile

/// The verbs of the control socket: carries out a client's request, and answers it when it is done. Belongs to
/// the loop's thread.
final class ControlService: ControlRequestHandler {
  private let driver: EngineDriver
  private unowned let host: any ControlHost
  private let following: EventFollowing
  private let status: StatusReporter
  private let log: DaemonLog
  /// Workers whose hibernation waits for a look at the disk; later requests about them.
  private var awaitingDisk: [WorkerID: [() -> Void]] = [:]
  private var diskWasAsked = false

  private static let patienceForStatus = Duration.seconds(2)
  /// A wrapper may take a while to end gracefully, or to write its memory.
  private static let patienceForWrapper = Duration.seconds(600)

  /// The host isn't kept alive.
  init(
    driver: EngineDriver, host: any ControlHost, following: EventFollowing,
    status: StatusReporter, log: DaemonLog
  ) {
    self.driver = driver
    self.host = host
    self.following = following
    self.status = status
    self.log = log
  }

  func handle(
    _ request: ControlRequest, from client: ClientID,
    then respond: @escaping (ControlResponse) -> Void
  ) {
    var isAnswered = false  // What brings an answer may bring it twice.
    let call = ControlCall(request: request) { response in
      if !isAnswered { respond(response) }
      isAnswered = true
    }
    if request.verb == .events, request.follow == true {
      following.follow(client, request.id, worker: request.worker)
    }
    if request.verb == .register {
      let refusal = host.register(request.wrapper, from: client)
      return call.answer(refusal == nil ? .done : .badRequest, refusal ?? "known")
    }
    carryOut(call)
  }

  func end(by verb: ControlRequest.Verb) {
    if verb == .leave { return host.leave() }
    log(.notice, "stopping: requested by `dormouse shutdown`; all workers are stopped first")
    host.end()
  }

  func hasReadEverything(_ client: ClientID) { following.hasReadEverything(client) }

  func hasLeft(_ client: ClientID) {
    following.forget(client)
    host.hasLeft(client)
  }

  private func carryOut(_ call: ControlCall) {
    let request = call.request
    if let expires = request.expires, host.now.nanoseconds > expires {
      return call.answer(
        .refused,
        "`\(request.verb.rawValue)` came too late: the client has stopped waiting")
    }
    switch request.verb {
    case .ps: status.report(request, then: call.respond)
    case .status: reportStatus(call)
    case .jetsam: jetsam(call)
    case .events: events(call)
    case .explain, .explainSavings: explain(call)
    case .policy: policyInForce(call)
    case .run, .remove, .removeRunning: runOrRemove(call)
    case .adopt: host.adopt(request, then: call.respond)
    case .release: host.release(request, then: call.respond)
    case .previewAdoption: previewAdoption(call)
    case .reloadWorker: host.reloadWorker(request, then: call.respond)
    case .setPressure: setPressure(call)
    case .doctor: host.examineItself { call.respond(ControlResponse(id: request.id, $0)) }
    case .reload, .previewReload: reload(call)
    case .start, .restart, .stop, .foreground, .background, .suspend, .hibernate, .wake, .terminate,
      .warn, .shadow, .enforce, .protect, .unprotect:
      askEngine(call)
    case .register, .shutdown, .leave: break  // `handle` and `end` handle these verbs.
    }
  }

  private func reportStatus(_ call: ControlCall) {
    let request = call.request
    guard host.isWrapped(request.worker) else {
      return status.report(request, then: call.respond)
    }
    // As its wrapper reports it now; if the wrapper can't be asked, as it was last reported.
    host.relay(request, patience: Self.patienceForStatus) { [unowned self] answer in
      // A wrapped worker has no processes that this daemon manages.
      var kept = status.report(request, nil)
      if answer.result == .done, let workers = answer.workers { kept.workers = workers }
      call.respond(kept)
    }
  }

  private func explain(_ call: ControlCall) {
    if call.request.verb == .explainSavings {
      return KeptMemoryReporter(driver: driver, host: host, status: status).answer(call)
    }
    if host.isWrapped(call.request.worker) { return relay(call) }
    let reporter = ExplanationReporter(engine: driver.state, now: host.now)
    guard let name = call.request.worker else {
      var response = ControlResponse(
        id: call.request.id, result: .done, text: "the order of termination and hibernation")
      response.ranking = reporter.ranking()
      return call.respond(response)
    }
    let id = WorkerID(name)
    let facts = host.facts(of: id)
    guard var found = reporter.explanation(of: id, facts) else { return answerUnknown(call, name) }
    let text = "\(name) is \(found.state.spoken): \(found.report.because.text)"
    var response = ControlResponse(id: call.request.id, result: .done, text: text)
    (found.report.rule, found.report.activity) = (facts?.rule, facts?.activity?())
    let policy = host.policyFacts()
    found.report.remedy = RemedyReporter(
      engine: driver.state, origins: policy.origins, isWrapper: policy.isWrapper, now: host.now
    ).remedy(of: id, facts, activity: found.report.activity)
    response.explanation = found.report
    call.respond(response)
  }

  private func policyInForce(_ call: ControlCall) {
    if host.isWrapped(call.request.worker) { return relay(call) }
    let reporter = PolicyReporter(engine: driver.state, facts: host.policyFacts(), now: host.now)
    var response = ControlResponse(id: call.request.id, result: .done, text: "the policy in effect")
    if let name = call.request.worker {
      let id = WorkerID(name)
      guard let facts = host.facts(of: id), let snapshot = driver.state.snapshot(of: id) else {
        return answerUnknown(call, name)
      }
      response.text += " for \(name)"
      response.policy = reporter.worker(
        snapshot, facts.policy, isChosen: facts.hasChosenPolicy)
    } else {
      response.policy = reporter.machine()
    }
    call.respond(response)
  }

  /// Answered when the journal can be read: clients read the past from its files, so that the daemon
  /// needs to keep none of it in memory.
  private func events(_ call: ControlCall) {
    host.saveJournal { place in
      var response = ControlResponse(
        id: call.request.id, result: .done,
        text: place.directory.map { "the journal is in \($0)" } ?? "there is no journal")
      response.journal = place
      call.respond(response)
    }
  }

  private func jetsam(_ call: ControlCall) {
    let ids = host.jetsamIDs
    guard let wanted = call.request.report ?? ids.first else {
      let text =
        driver.state.isTerminatingForMemory
        ? "workers are being terminated for lack of memory; the report follows when that is over"
        : "no worker has been terminated for lack of memory"
      return call.respond(
        ControlResponse(id: call.request.id, result: .done, text: text, reports: ids))
    }
    host.loadJetsam(wanted) { record in
      let text =
        record == nil ? "there is no jetsam report \(wanted)" : "jetsam report \(wanted)"
      call.respond(
        ControlResponse(
          id: call.request.id, result: record == nil ? .failed : .done, text: text, jetsam: record,
          reports: ids))
    }
  }

  // MARK: workers

  /// The verbs that the engine answers.
  private func askEngine(_ call: ControlCall) {
    let request = call.request
    guard let verb = Request.Verb(rawValue: request.verb.rawValue), let name = request.worker else {
      return call.answer(.badRequest, "`\(request.verb.rawValue)` needs a worker")
    }
    let id = WorkerID(name)
    // This daemon, not the wrapper, terminates wrapped workers for lack of memory.
    if host.isWrapped(name), verb != .protect, verb != .unprotect { return relay(call) }
    if waitsForDisk(call, id) { return }
    if host.isLeaving || host.isEnding && verb != .stop && verb != .terminate {
      return answerEnding(call)
    }
    if let refusal = host.foreignRefusal(verb, id) { return call.answer(.refused, refusal) }
    if let problem = call.problemOfTime { return call.answer(.badRequest, problem) }
    // A client waits for these.
    if verb == .wake || verb == .foreground || verb == .stop { host.prioritize(id) }
    host.personAsks(verb, id)
    guard verb == .start || verb == .restart else {
      return host.request(verb, id, asked: nil, lasting: call.lasting) { call.answer($0) }
    }
    host.start(id, verb) { call.answer($0) }
  }

  /// If you have made room on the disk, you needn't wait for the next regular look: before a suspended worker
  /// is hibernated by request, the disk is looked at. Further requests about the worker wait for that, and keep
  /// their order.
  private func waitsForDisk(_ call: ControlCall, _ id: WorkerID) -> Bool {
    if awaitingDisk[id] != nil {
      awaitingDisk[id]?.append { [unowned self] in carryOut(call) }
      return true
    }
    guard call.request.verb == .hibernate, driver.state.state(of: id) == .suspended, !diskWasAsked
    else { return false }
    awaitingDisk[id] = [{ [unowned self] in carryOut(call) }]
    host.sendDiskReading { [unowned self] in
      let waiting = awaitingDisk.removeValue(forKey: id) ?? []
      diskWasAsked = true
      for each in waiting { each() }
      diskWasAsked = false
    }
    return true
  }

  /// Of a worker that no configuration declares.
  private func runOrRemove(_ call: ControlCall) {
    if host.isEnding || host.isLeaving { return answerEnding(call) }
    let runs = UndeclaredWorkers(policy: driver.state.policy, host: host)
    if call.request.verb == .run { runs.run(call) } else { runs.remove(call) }
  }

  // MARK: the daemon

  private func previewAdoption(_ call: ControlCall) {
    host.previewAdoption { report in
      var response = ControlResponse(
        id: call.request.id, result: report == nil ? .failed : .done,
        text: report?.text ?? "the processes of this machine can't be read in time")
      response.adoption = report
      call.respond(response)
    }
  }

  private func setPressure(_ call: ControlCall) {
    if host.isEnding || host.isLeaving { return answerEnding(call) }
    let (result, text) = PressureSetting(driver: driver).set(
      call.request.level, for: call.request.seconds)
    call.answer(result, text)
  }

  private func reload(_ call: ControlCall) {
    let allowEmpty = call.request.allowEmpty == true
    let answer = { (outcome: ReloadOutcome) in
      call.answer(outcome.isDone ? .done : .refused, outcome.text)
    }
    if call.request.verb == .reload {
      host.reload(allowEmpty: allowEmpty, then: answer)
    } else {
      host.previewReload(allowEmpty: allowEmpty, then: answer)
    }
  }

  private func relay(_ call: ControlCall) {
    host.relay(call.request, patience: Self.patienceForWrapper, then: call.respond)
  }

  private func answerUnknown(_ call: ControlCall, _ name: String) {
    call.answer(.unknownWorker, "there is no worker named \(name)")
  }

  private func answerEnding(_ call: ControlCall) { call.answer(.refused, "the daemon is ending") }
}
