import Lifecycle
import Policy

/// Records which workers are protected from termination for lack of memory, by their policies and
/// by requests, independently of the engine's rules.
struct ProtectionCheck: Sendable {
  private var byPolicy: Set<WorkerID> = []
  private var byRequest: Set<WorkerID> = []
  private var existing: Set<WorkerID> = []

  func covers(_ worker: WorkerID) -> Bool {
    byPolicy.contains(worker) || byRequest.contains(worker)
  }

  mutating func record(_ event: Event) {
    switch event {
    case .added(let worker, let profile), .adopted(let worker, let profile, _):
      existing.insert(worker)
      record(profile, of: worker)
    case .profileChanged(let worker, let profile): record(profile, of: worker)
    case .request(let request) where existing.contains(request.worker):
      if request.verb == .protect { byRequest.insert(request.worker) }
      if request.verb == .unprotect { byRequest.remove(request.worker) }
    default: break
    }
  }

  /// Forgets the workers that the engine has removed. The next worker of such a name is another
  /// one.
  mutating func forgetAll(but workers: [WorkerID]) {
    let left = Set(workers)
    existing.formIntersection(left)
    byPolicy.formIntersection(left)
    byRequest.formIntersection(left)
  }

  private mutating func record(_ profile: WorkerProfile, of worker: WorkerID) {
    if profile.policy.terminate.forMemory {
      byPolicy.remove(worker)
    } else {
      byPolicy.insert(worker)
    }
  }

  /// Checks the report that all remaining workers are protected. Returns a complaint, or `nil`.
  func check(_ workers: [WorkerID], at level: PressureLevel) -> String? {
    if workers.isEmpty || level == .normal { return "an empty report on protected workers" }
    return workers.first { !covers($0) }.map { "\($0) was reported as protected and isn't" }
  }
}
