import Policy

// Suspending, hibernating and resuming wait for an outcome, and an outcome can be lost. So each has
// a deadline. When it passes, the engine asks the daemon for the worker's real state (`inspect`),
// and continues from the result. While the operation is still under way, the engine waits longer. A
// worker whose state stays unknown is killed: it never runs on memory that isn't verified.

/// The operation that `suspending`, `hibernating` or `resuming` waits for.
struct Transit: Codable, Sendable, Equatable {
  /// When the worker's state is inspected next.
  var inspectAt: Instant
  /// The number of inspections in a row without an answer.
  var unanswered = 0
  /// Whether the delay has been reported.
  var isReported = false
}

/// The time limits of these operations.
public enum TransitLimits {
  /// The limit without any memory to move. A freeze takes 5 s at most; the thread may be busy with
  /// other workers.
  public static let base = Duration.seconds(30)
  /// The speed of a slow disk in bytes a second. The limit grows by a second for each of these 10
  /// MB.
  public static let bytesPerSecond = ByteCount.megabytes(10)
  /// The time from an inspection to its answer.
  public static let answer = Duration.seconds(10)
  /// The time between two inspections of an operation that is still under way.
  public static let interval = Duration.seconds(30)
  /// After this many inspections without an answer the state counts as unknown.
  public static let maxUnanswered = 3

  /// The time from the directive to the first inspection.
  public static func limit(moving memory: ByteCount) -> Duration {
    base + .seconds(Int(memory.bytes / bytesPerSecond.bytes))
  }
}

/// The result of an inspection (`Directive.inspect`).
public enum WorkerCondition: Codable, Hashable, Sendable {
  /// The operation hasn't ended yet.
  case underWay
  /// The worker's processes run, with all of their memory.
  case running
  /// The worker is stopped, with all of its memory.
  case suspended
  /// The worker is stopped, and its memory is in its image.
  case hibernated
  /// The worker's memory can't be verified. The text says why.
  case unverifiable(String)
}

extension Engine {
  mutating func advanceTransit(_ index: Int) {
    guard let transit = workers[index].run.transit, now >= transit.inspectAt else { return }
    let worker = workers[index]
    let time = (now - worker.since).text
    if worker.profile.leader != nil {
      return recordHibernateFailed(
        index, "no answer from its wrapper within \(time)", permanent: false)
    }
    guard transit.unanswered < TransitLimits.maxUnanswered else {
      return endUnverified(
        index,
        "\(worker.state.rawValue) had no outcome within \(time), and \(transit.unanswered) "
          + "inspections of its state had no answer")
    }
    if !transit.isReported {
      emit(
        .watchdogMissed(
          worker.id,
          "\(worker.state.rawValue) has had no outcome for \(time): inspecting its state"))
    }
    workers[index].run.transit = Transit(
      inspectAt: now + TransitLimits.answer, unanswered: transit.unanswered + 1, isReported: true)
    emit(.inspect(worker.id))
  }

  /// Uses the inspection's result as the outcome. If the engine has continued meanwhile, the result
  /// changes nothing.
  mutating func recordInspection(_ index: Int, _ condition: WorkerCondition) {
    let lost = "its outcome was lost"
    switch (workers[index].state, condition) {
    case (let state, .underWay) where state.isTransit:
      workers[index].run.transit?.unanswered = 0
      workers[index].run.transit?.inspectAt = now + TransitLimits.interval
    case (let state, .unverifiable(let reason)) where state.isTransit: endUnverified(index, reason)
    case (.suspending, .running): recordSuspendFailed(index, lost)
    case (.suspending, .suspended): recordSuspended(index)
    case (.suspending, .hibernated):
      endUnverified(index, "found hibernated while being suspended")
    case (.hibernating, .running): recordRunningInstead(index)
    case (.hibernating, .suspended): recordHibernateFailed(index, lost, permanent: false)
    case (.hibernating, .hibernated): recordHibernated(index, nil)
    case (.resuming, .running): recordResumed(index, nil)
    case (.resuming, .suspended): recordResumeFailed(index, lost, intact: true, to: .suspended)
    case (.resuming, .hibernated): recordResumeFailed(index, lost, intact: true, to: .hibernated)
    default: break
    }
  }

  /// Kills the worker, because its memory can't be verified.
  mutating func endUnverified(_ index: Int, _ reason: String) {
    let sentence = "its memory can't be verified: \(reason)"
    failGoal(index, "\(workers[index].id) is terminated: \(sentence)")
    beginEnding(index, .failed(sentence), gracefully: false)
  }

  /// Records that something has made the worker run, with all of its memory.
  private mutating func recordRunningInstead(_ index: Int) {
    let reason = "found running while being hibernated"
    recordHibernationFailure(index, reason)
    workers[index].run.runningSince = now
    workers[index].run.wakeNeeded = nil
    move(index, to: .background, .failed(reason))
    emit(.measure(workers[index].id))
    switch workers[index].goal?.destination {
    case .hibernated?, .suspended?:
      failGoal(index, "\(workers[index].id) could not be hibernated: \(reason)")
    default: break
    }
  }
}
