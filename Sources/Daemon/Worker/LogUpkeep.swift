import Lifecycle
import Policy
import Supervision

// Logs that grow over `output.max_size` while their worker runs.

/// What is being done about one worker's log.
struct LogUpkeep {
  fileprivate var isUnderWay = false
  fileprivate var retryAfter = Instant.zero
}

extension Daemon {
  /// At each sample of a running worker. While it launches its log is read for readiness, and stays.
  func keepLogSmall(_ runtime: WorkerRuntime) {
    guard let limit = runtime.configuration.output.maxSize, let process = runtime.process,
      !runtime.logUpkeep.isUnderWay, runtime.logUpkeep.retryAfter < EventLoop.now,
      engine.state(of: runtime.id) != .launching
    else { return }
    var place = process.plan.logPlace
    place.keep = runtime.configuration.output.keep
    runtime.logUpkeep.isUnderWay = true
    let (id, rotation) = (runtime.id, LogRotation(place, limit: limit.bytes))
    // As long as it takes: a large log and a slow disk take seconds.
    jobs.run(about: "log size of \(id)", within: .seconds(3600)) {
      Self.failure { try rotation.rotateIfTooLarge() }
    } then: { [unowned self] outcome in
      if case .done(let failure) = outcome { rotated(id, failure) } else { rotated(id, nil) }
    }
  }

  private func rotated(_ id: WorkerID, _ failure: String?) {
    guard let runtime = workers[id] else { return }
    runtime.logUpkeep.isUnderWay = false
    guard let failure else { return }
    // A disk that is full now may not be in a minute.
    runtime.logUpkeep.retryAfter = EventLoop.now + .seconds(60)
    log(.warning, "\(id): its log is over output.max_size and can't be put aside: \(failure)")
  }
}
