import Lifecycle

/// Checks `wake_with`, independently of the engine. When a worker wakes, the workers that wake with
/// it must not stay asleep. A worker that was woken in this way wakes no others.
struct WakeTogetherCheck {
  private var named: [WorkerID: [WorkerID]] = [:]
  /// The workers that have to wake, each with the worker with which it wakes.
  private var owed: [WorkerID: WorkerID] = [:]
  /// The requests without an answer. Such a request has priority.
  private var requests: [Request.ID: WorkerID] = [:]

  mutating func record(_ event: Event) {
    switch event {
    case .added(let worker, let profile), .adopted(let worker, let profile, _),
      .profileChanged(let worker, let profile):
      named[worker] = profile.wakeWith
    case .released(let worker): named[worker] = nil
    case .request(let request): requests[request.id] = request.worker
    default: break
    }
  }

  /// Records a directive. Returns a complaint, or `nil`.
  mutating func record(_ directive: Directive, _ states: [WorkerID: WorkerState]) -> String? {
    switch directive {
    case .answer(let request, _):
      requests[request] = nil
      return nil
    case .transition(let transition): return record(transition, states)
    default: return nil
    }
  }

  private mutating func record(
    _ transition: Transition, _ states: [WorkerID: WorkerState]
  ) -> String? {
    let wasOwed = owed[transition.worker] != nil
    if !transition.to.sleepsOrWill { owed[transition.worker] = nil }
    guard transition.to == .resuming else { return nil }
    switch transition.cause {
    case .wokenWith(let other, _):
      return wasOwed
        ? nil : "\(transition.worker) is woken with \(other), which has woken no others"
    case .heartbeat, .requested(.stop): return nil
    default: break
    }
    for other in reached(from: transition.worker) where states[other]?.sleepsOrWill == true {
      owed[other] = transition.worker
    }
    return nil
  }

  private func reached(from worker: WorkerID) -> Set<WorkerID> {
    var reached: Set<WorkerID> = []
    var open = named[worker] ?? []
    while let next = open.popLast() {
      if reached.insert(next).inserted { open += named[next] ?? [] }
    }
    reached.remove(worker)
    return reached
  }

  /// Returns a complaint, or `nil`.
  func check(_ engine: Engine, _ states: [WorkerID: WorkerState]) -> String? {
    for (worker, other) in owed where states[worker]?.sleeps == true {
      // A wake that failed may be waiting for its next attempt.
      if requests.values.contains(worker) || engine.snapshot(of: worker)?.hasFailed == true {
        continue
      }
      return "\(worker) sleeps on, although \(other) woke"
    }
    return nil
  }

  /// Returns a complaint, or `nil`, when no more events come.
  var finalComplaint: String? {
    owed.first.map { "\($0.key) never woke with \($0.value)" }
  }
}

extension WorkerState {
  fileprivate var sleepsOrWill: Bool { sleeps || self == .suspending || self == .hibernating }
}

extension WorkerSnapshot {
  fileprivate var hasFailed: Bool { if case .failed = cause { true } else { false } }
}
