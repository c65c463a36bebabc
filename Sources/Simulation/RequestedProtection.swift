import Lifecycle

/// Records which workers are protected from termination for lack of memory by requests,
/// independently of the engine's rules.
struct RequestedProtection {
  private(set) var workers: Set<WorkerID> = []
  private var existing: Set<WorkerID> = []

  mutating func record(_ event: Event) {
    switch event {
    case .added(let worker, _), .adopted(let worker, _, _): existing.insert(worker)
    case .request(let request) where existing.contains(request.worker):
      if request.verb == .protect { workers.insert(request.worker) }
      if request.verb == .unprotect { workers.remove(request.worker) }
    default: break
    }
  }

  /// Forgets the workers that the engine has removed. The next worker of such a name is another
  /// one.
  mutating func forgetAll(but workers: [WorkerID]) {
    existing.formIntersection(workers)
    self.workers.formIntersection(workers)
  }
}
