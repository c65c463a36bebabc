import Policy

// A request sets a goal, and `advance` moves the worker towards it. The goal of a later request
// replaces that of an earlier one, which is answered then. So every request gets exactly one
// answer.

extension Engine {
  mutating func accept(_ request: Request) {
    guard let index = index(of: request.worker) else {
      let text = "there is no worker named \(request.worker)"
      return emit(.answer(request.id, Answer(.unknownWorker, text)))
    }
    if request.verb == .protect || request.verb == .unprotect {
      return acceptProtection(index, request)
    }
    if let leader = workers[index].profile.leader {
      return refuse(request, "\(request.worker) is controlled by \(leader), not by this daemon")
    }
    if request.verb == .start || request.verb == .restart { return acceptStart(index, request) }
    if request.verb == .shadow || request.verb == .enforce {
      return acceptMode(index, request)
    }
    if workers[index].state == .terminated {
      return acceptWhileTerminated(request)
    }
    if request.verb == .warn { return acceptWarn(index, request) }
    if request.verb == .trim || request.verb == .fill { return acceptTrim(index, request) }
    guard let destination = request.verb.destination else { return }
    if workers[index].state == .terminating {
      return acceptWhileTerminating(index, request, to: destination)
    }
    if request.verb == .hibernate, let reason = workers[index].refusalInAdvance {
      return refuse(request, "\(request.worker) can't be hibernated: \(reason)")
    }
    if request.verb == .hibernate, let reason = workers[index].failedWake {
      let text =
        "\(request.worker) is still hibernated: the last wake failed: \(reason); `dormouse wake "
        + "\(request.worker)` tries again"
      return emit(.answer(request.id, Answer(.failed, text)))
    }
    setGoal(index, destination, for: request)
    if request.verb == .wake, workers[index].state.runs {
      imagineWake(index)
      concludeGoal(index, code: .done, text: "\(request.worker) is already running")
    }
  }

  /// A second request to end the worker is answered as done. Only requests that need a live worker
  /// are refused.
  private mutating func acceptWhileTerminated(_ request: Request) {
    let name = request.worker
    guard request.verb.destination?.isEnd != true else {
      return emit(.answer(request.id, Answer(.done, "\(name) is not running")))
    }
    refuse(request, "\(name) is not running; start it with `dormouse start \(name)`")
  }

  private mutating func setGoal(
    _ index: Int, _ destination: Goal.Destination, for request: Request
  ) {
    workers[index].run.retryResumeAt = nil
    workers[index].run.returnsToFront = nil
    // A running heartbeat or timer's wake becomes a use.
    if destination != .suspended, destination != .hibernated {
      endHeartbeat(index)
      workers[index].run.tick = nil
    }
    if workers[index].goal?.destination == destination {
      workers[index].goal?.requests.append(request.id)
      return
    }
    replaceGoal(index, by: request.verb)
    if destination.isEnd { replaceStarts(index, by: request.verb) }
    workers[index].goal = Goal(
      destination: destination, cause: .requested(request.verb), requests: [request.id])
  }

  private mutating func acceptStart(_ index: Int, _ request: Request) {
    let name = request.worker
    switch workers[index].state {
    case .terminated:
      launch(
        index, for: request.id, verb: request.verb, asked: request.asked,
        occasion: request.occasion)
    case .terminating where workers[index].run.ending?.hasGivenUp == true:
      emit(.answer(request.id, Answer(.failed, "\(name) has not ended since SIGKILL")))
    case .launching, .terminating:
      if workers[index].state == .launching { replaceEnd(index, by: .start) }
      if request.verb == .start {
        workers[index].startsForFront = true
        workers[index].frontAsked = request.asked ?? now
      }
      workers[index].starts.append(request.id)
    default:
      replaceEnd(index, by: .start)
      let text = "\(name) is already running, \(workers[index].state.text)"
      emit(.answer(request.id, Answer(.done, text)))
    }
  }

  private mutating func acceptWarn(_ index: Int, _ request: Request) {
    let worker = workers[index]
    guard worker.state == .foreground || worker.state == .background else {
      return refuse(
        request,
        "\(worker.id) can't be asked to free memory while \(worker.state.text); wake it first "
          + "with `dormouse wake \(worker.id)`")
    }
    guard worker.profile.canShed else {
      return refuse(request, "\(worker.id) can't be asked to free memory: configure `shed:`")
    }
    workers[index].warns.append(request.id)
    if worker.run.shed?.kind != .memoryWarning { workers[index].run.owesWarning = true }
  }

  /// The end can't be cancelled any more, but a request can wait for it.
  private mutating func acceptWhileTerminating(
    _ index: Int, _ request: Request, to destination: Goal.Destination
  ) {
    guard destination.isEnd else {
      return refuse(request, "\(request.worker) is being terminated")
    }
    replaceStarts(index, by: request.verb)
    if workers[index].goal?.destination.isEnd == true {
      workers[index].goal?.requests.append(request.id)
    } else {
      replaceGoal(index, by: request.verb)
      workers[index].goal = Goal(
        destination: destination, cause: .requested(request.verb), requests: [request.id])
    }
    killAgain(index)
  }

  private mutating func replaceGoal(_ index: Int, by verb: Request.Verb) {
    concludeGoal(index, code: .refused, text: Self.replacedText(workers[index].id, by: verb))
  }

  private mutating func replaceEnd(_ index: Int, by verb: Request.Verb) {
    guard workers[index].goal?.destination.isEnd == true else { return }
    replaceGoal(index, by: verb)
  }

  private mutating func replaceStarts(_ index: Int, by verb: Request.Verb) {
    answerStarts(index, code: .refused, text: Self.replacedText(workers[index].id, by: verb))
  }

  private static func replacedText(_ worker: WorkerID, by verb: Request.Verb) -> String {
    "\(worker): replaced by a later `\(verb.rawValue)` request"
  }

  mutating func refuse(_ request: Request, _ text: String) {
    emit(.answer(request.id, Answer(.refused, text)))
  }

  // MARK: answers

  /// The worker is in the state that its goal names: every request for it is answered.
  mutating func fulfillGoal(_ index: Int) {
    let worker = workers[index]
    let deeper = worker.state == .hibernated && worker.goal?.destination == .suspended
    concludeGoal(
      index, code: .done, text: "\(worker.id) is \(deeper ? "already " : "")\(worker.state.text)")
  }

  mutating func failGoal(_ index: Int, _ text: String) {
    concludeGoal(index, code: .failed, text: text)
  }

  /// Drops the goal, and answers every request for it.
  mutating func concludeGoal(_ index: Int, code: Answer.Code, text: String) {
    guard let goal = workers[index].goal else { return }
    workers[index].goal = nil
    decisions += 1
    for request in goal.requests { emit(.answer(request, Answer(code, text))) }
  }

  mutating func answerStarts(_ index: Int, code: Answer.Code, text: String) {
    for request in workers[index].starts { emit(.answer(request, Answer(code, text))) }
    workers[index].starts = []
  }

  mutating func failWarns(_ index: Int, _ text: String) {
    for request in workers[index].warns { emit(.answer(request, Answer(.failed, text))) }
    workers[index].warns = []
  }
}

extension Request.Verb {
  /// The goal of a request with this verb. `nil`: the verb names no state.
  var destination: Goal.Destination? {
    switch self {
    case .start, .restart, .warn, .trim, .fill, .shadow, .enforce, .protect, .unprotect: nil
    case .stop: .stopped
    case .terminate: .terminated
    case .foreground: .foreground
    case .background, .wake: .background
    case .suspend: .suspended
    case .hibernate: .hibernated
    }
  }
}

extension WorkerRecord {
  /// Why the last wake failed, if the worker is still hibernated only for that reason.
  fileprivate var failedWake: String? {
    guard state == .hibernated, run.failedResumes > 0, case .failed(let reason) = cause else {
      return nil
    }
    return reason
  }

  /// A reason against hibernating the worker that doesn't depend on its footprint.
  fileprivate var refusalInAdvance: String? {
    guard state != .hibernated, state != .hibernating else { return nil }
    if !policy.hibernate.enabled { return HibernationObstacle.disabled.sentence }
    return run.hibernation.permanentRefusal.map {
      HibernationObstacle.refusedForGood($0).sentence
    }
  }
}
