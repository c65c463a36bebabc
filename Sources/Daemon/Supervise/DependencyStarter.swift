import Lifecycle
import Policy

/// Starts workers with `depends_on:`. Such a worker is started when the workers that it depends on
/// have reached the conditions that it names. Those that don't run are started for it. It belongs
/// to the event loop's thread.
final class DependencyStarter {
  /// A worker that is to be started and waits for others.
  private struct Wait {
    /// `start` or `restart`.
    var verb: Request.Verb
    /// The time of the request.
    var asked: Instant
    var occasion: Request.Occasion?
    var answers: [(Answer) -> Void]
    /// The workers that were started for this one. If one of them ends now, this is final.
    var started: Set<WorkerID> = []
    /// The workers that were being stopped when this start was requested. Each is started as soon
    /// as it has ended.
    var stopping: Set<WorkerID> = []
    /// Why one of the dependencies can't be started; nil if there is no reason.
    var failure: String?
  }

  private let restarts: RestartSupervisor
  let requests: WorkerRequests
  private var waits: [WorkerID: Wait] = [:]

  init(restarts: RestartSupervisor, requests: WorkerRequests) {
    self.restarts = restarts
    self.requests = requests
  }

  /// Starts a worker after those that it depends on.
  ///
  /// - Parameter verb: `restart` displaces no other worker from the foreground.
  func start(
    _ id: WorkerID, _ verb: Request.Verb = .start, occasion: Request.Occasion? = nil,
    then answer: @escaping (Answer) -> Void
  ) {
    let dependencies = dependencies(of: id)
    guard !dependencies.isEmpty, state(of: id) == .terminated, !requests.returning.isAdopting(id)
    else {
      return requests.request(verb, id, occasion: occasion, then: answer)
    }
    let now = restarts.timers.now
    if var wait = waits[id] {
      if verb == .start { (wait.verb, wait.asked, wait.occasion) = (verb, now, occasion) }
      wait.answers.append(answer)
      return waits[id] = wait
    }
    waits[id] = Wait(verb: verb, asked: now, occasion: occasion, answers: [answer])
    for dependency in dependencies { startIfNeeded(dependency, for: id) }
    advance()
  }

  private func startIfNeeded(_ dependency: Dependency, for id: WorkerID) {
    let other = WorkerID(dependency.worker)
    guard state(of: other) != nil, verdict(dependency) != .met else { return }
    if state(of: other) == .terminating, restarts.histories[other]?.isToStop == true {
      waits[id]?.stopping.insert(other)
    }
    if isStarted(other) { return }
    waits[id]?.started.insert(other)
    start(other, .restart, occasion: .dependency) { [unowned self] answer in
      guard answer.code != .done, !isStarted(other) else { return }
      // A worker that ends quickly may already have met the condition.
      guard waits[id] != nil, verdict(dependency) != .met else { return }
      waits[id]?.failure = answer.text
      advance()
    }
  }

  /// Starts what can be started now, because a worker has changed its state or has ended.
  func advance() {
    for id in waits.keys.sorted() { check(id) }
  }

  private func check(_ id: WorkerID) {
    guard let wait = waits[id] else { return }
    if let failure = wait.failure { return conclude(id, failure) }
    for dependency in dependencies(of: id) {
      switch verdict(dependency) {
      case .met: continue
      case .waiting:
        let other = WorkerID(dependency.worker)
        guard restarts.histories[other]?.lastEnd?.wasStopped == true else { return }
        if waits[id]?.stopping.remove(other) != nil {
          restarts.forgetEnd(of: other)
          startIfNeeded(dependency, for: id)
        } else if wait.started.contains(other) {
          conclude(id, "\(dependency.worker) was stopped")
        }
      case .impossible:
        let exit = restarts.histories[WorkerID(dependency.worker)]?.exits.last
        let reason = exit?.why ?? "exit status unknown"
        conclude(id, "\(dependency.worker) has ended: \(reason)")
      }
      return
    }
    waits[id] = nil
    requests.request(wait.verb, id, asked: wait.asked, occasion: wait.occasion) { answer in
      for each in wait.answers { each(answer) }
    }
  }

  private func conclude(_ id: WorkerID, _ reason: String) {
    let text = "\(id) is not started: a worker that it depends on failed: \(reason)"
    restarts.record(problem: "not started: \(reason)", of: id)
    for each in waits.removeValue(forKey: id)?.answers ?? [] { each(Answer(.failed, text)) }
    advance()
  }

  /// Removes a worker that isn't to be started any more.
  func stopWaiting(_ id: WorkerID, _ text: String) {
    for each in waits.removeValue(forKey: id)?.answers ?? [] { each(Answer(.refused, text)) }
  }

  /// Removes all workers, because none is to be started any more.
  func stopWaiting(_ text: String) {
    for id in waits.keys.sorted() { stopWaiting(id, text) }
  }

  /// What a worker waits for, for `ps`; nil if it waits for nothing.
  func awaited(by id: WorkerID) -> (text: String, workers: [String])? {
    guard waits[id] != nil else { return nil }
    let missing = dependencies(of: id).filter { verdict($0) != .met }
    let texts = missing.map { "\($0.worker) (\($0.condition.rawValue))" }
    return ("waits for " + texts.joined(separator: ", "), missing.map(\.worker))
  }

  // MARK: progress of dependencies

  /// The entries of a worker's `depends_on:`.
  private func dependencies(of id: WorkerID) -> [Dependency] {
    restarts.workers[id]?.configuration.dependsOn ?? []
  }

  private func state(of id: WorkerID) -> WorkerState? { restarts.driver.state.state(of: id) }

  /// Whether the worker will be started again: after a back-off, or when there is memory again.
  private func willRestart(_ id: WorkerID) -> Bool { restarts.histories[id]?.plan != nil }

  private func isStarted(_ id: WorkerID) -> Bool { requests.isAlive(id) || willRestart(id) }

  private func verdict(_ dependency: Dependency) -> Dependency.Verdict {
    let id = WorkerID(dependency.worker)
    let verdict = dependency.verdict(progress(of: id, for: dependency.condition))
    // The worker will be started again, so the condition can still be met.
    return verdict == .impossible && willRestart(id) ? .waiting : verdict
  }

  /// How far the worker has come. A sleeping worker is ready, because a request wakes it.
  private func progress(
    of id: WorkerID, for condition: Dependency.Condition
  ) -> Dependency.Progress {
    if requests.returning.isAdopting(id) { return .ready }
    switch state(of: id) {
    case nil: return .notStarted
    case .launching: return restarts.workers[id]?.process == nil ? .notStarted : .launched
    case .terminating: return .launched
    case .terminated:
      guard let lastEnd = restarts.histories[id]?.lastEnd else { return .notStarted }
      let wantsItsEnd = condition == .exited || condition == .exitedOK
      // A server that the operator stopped hasn't finished its work.
      return lastEnd.wasStopped && !wantsItsEnd
        ? .notStarted : .ended(succeeded: lastEnd.succeeded)
    default: return .ready
    }
  }
}
