import Lifecycle
import Policy

// `depends_on:`. A worker is started when those that it needs have come far enough, which are started
// for it where they aren't running; and it is stopped before them when the daemon ends.

/// A worker that is to be started, and waits for others.
struct DependencyWait {
  /// `start`, or `restart`.
  var verb: Request.Verb
  /// When it was asked for.
  var asked: Instant
  var answers: [(Answer) -> Void]
  /// Asked to start for it: their end, now, is final.
  var started: Set<WorkerID> = []
  /// Why one of them can't be started.
  var failure: String?
}

extension Daemon {
  /// Starts a worker after those that it depends on.
  ///
  /// - Parameter verb: `restart` displaces no other worker from the foreground.
  func startInOrder(
    _ id: WorkerID, _ verb: Request.Verb = .start, then answer: @escaping (Answer) -> Void
  ) {
    guard let runtime = workers[id], !runtime.configuration.dependsOn.isEmpty,
      engine.state(of: id) == .terminated, adopting[id] == nil
    else { return request(verb, id, then: answer) }
    if waits[id] != nil {
      if verb == .start {
        waits[id]?.verb = .start
        waits[id]?.asked = EventLoop.now
      }
      waits[id]?.answers.append(answer)
      return
    }
    waits[id] = DependencyWait(verb: verb, asked: EventLoop.now, answers: [answer])
    for dependency in runtime.configuration.dependsOn { startIfNeeded(dependency, for: id) }
    lookAtDependents()
  }

  private func startIfNeeded(_ dependency: Dependency, for id: WorkerID) {
    let other = WorkerID(dependency.worker)
    guard let runtime = workers[other], verdict(dependency) != .met, !isAlive(other),
      runtime.runs.due == nil, runtime.runs.waitsForMemory == nil
    else { return }
    waits[id]?.started.insert(other)
    startInOrder(other, .restart) { [unowned self] answer in
      guard answer.code != .done, !isAlive(other), workers[other]?.runs.due == nil else { return }
      // One that ends quickly may have done all that is asked of it.
      guard waits[id] != nil, verdict(dependency) != .met else { return }
      waits[id]?.failure = answer.text
      lookAtDependents()
    }
  }

  /// Somebody has come further, or ended.
  func lookAtDependents() {
    for id in waits.keys.sorted() { look(at: id) }
  }

  private func look(at id: WorkerID) {
    guard let wait = waits[id], let runtime = workers[id] else { return }
    if let failure = wait.failure { return conclude(id, failure) }
    for dependency in runtime.configuration.dependsOn {
      switch verdict(dependency) {
      case .met: continue
      case .waiting:
        guard wasStopped(dependency, wait) else { return }
        conclude(id, "\(dependency.worker) was stopped")
      case .impossible:
        let why = workers[WorkerID(dependency.worker)]?.runs.exits.last?.why ?? "it has ended"
        conclude(id, "\(dependency.worker) has ended: \(why)")
      }
      return
    }
    waits[id] = nil
    request(wait.verb, id, asked: wait.asked) { answer in for each in wait.answers { each(answer) }
    }
  }

  private func conclude(_ id: WorkerID, _ why: String) {
    let text = "\(id) isn't started, because it depends on a worker that failed: \(why)"
    workers[id]?.runs.problem = "not started: \(why)"
    for each in waits.removeValue(forKey: id)?.answers ?? [] { each(Answer(.failed, text)) }
    lookAtDependents()
  }

  /// It isn't to be started any more.
  func stopWaiting(_ id: WorkerID, _ text: String) {
    for each in waits.removeValue(forKey: id)?.answers ?? [] { each(Answer(.refused, text)) }
  }

  // MARK: how far they are

  private func verdict(_ dependency: Dependency) -> Dependency.Verdict {
    let id = WorkerID(dependency.worker)
    let verdict = dependency.verdict(progress(of: id, for: dependency.condition))
    // Not for good: it will be started again.
    guard verdict == .impossible, let runs = workers[id]?.runs,
      runs.due != nil || runs.waitsForMemory != nil
    else { return verdict }
    return .waiting
  }

  private func wasStopped(_ dependency: Dependency, _ wait: DependencyWait) -> Bool {
    let id = WorkerID(dependency.worker)
    return wait.started.contains(id) && workers[id]?.runs.lastEnd?.wasStopped == true
  }

  /// One that sleeps is ready: whoever needs it wakes it.
  private func progress(
    of id: WorkerID, for condition: Dependency.Condition
  ) -> Dependency.Progress {
    if adopting[id] != nil { return .ready }
    switch engine.state(of: id) {
    case nil: return .notStarted
    case .launching: return workers[id]?.process == nil ? .notStarted : .launched
    case .terminating: return .launched
    case .terminated:
      guard let end = workers[id]?.runs.lastEnd else { return .notStarted }
      let wantsItsEnd = condition == .exited || condition == .exitedOK
      // A server that a person stopped isn't one that has done its work.
      return end.wasStopped && !wantsItsEnd ? .notStarted : .ended(succeeded: end.succeeded)
    default: return .ready
    }
  }

  /// For `ps`: what it waits for; nil where it doesn't.
  func awaited(by runtime: WorkerRuntime) -> String? {
    guard waits[runtime.id] != nil else { return nil }
    let missing = runtime.configuration.dependsOn.filter { verdict($0) != .met }
    let texts = missing.map { "\($0.worker) (\($0.condition.rawValue))" }
    return "waits for " + texts.joined(separator: ", ")
  }

  // MARK: the end

  /// Asks for the end of all whom no one else needs any more; called again as they end.
  func stopInOrder() {
    for id in waits.keys { stopWaiting(id, "the daemon is ending") }
    let alive = workers.keys.filter(isAlive)
    // Who can't be killed doesn't keep the others.
    let needed = Set(
      alive.filter { !unstoppable.contains($0) }
        .flatMap { workers[$0]?.configuration.dependsOn ?? [] }.map { WorkerID($0.worker) })
    for id in alive.sorted() where !needed.contains(id) && workers[id]?.foreign == nil {
      guard askedToStop.insert(id).inserted else { continue }
      request(.stop, id) { [unowned self] answer in
        guard answer.code == .failed else { return }
        unstoppable.insert(id)
        stopInOrder()
      }
    }
  }
}
