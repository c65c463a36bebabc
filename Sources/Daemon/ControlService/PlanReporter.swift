import Control
import Lifecycle
import Policy

/// What `ps` and `status` show about a worker's earlier runs and about the plans for it.
struct PlanReporter {
  let plans: WorkerPlans
  let now: Instant

  func describe(_ report: inout WorkerReport) {
    if report.state == WorkerState.terminated.rawValue {
      report.reason = plan ?? report.reason
      if report.reason.code == Self.waitsForWorker { report.waitsFor = plans.awaitedWorkers }
      if case .backingOff(let due, _) = plans.restart {
        report.restartsInSeconds = max(0, (due - now).seconds)
      }
    }
    report.restarts = plans.restarts > 0 ? plans.restarts : nil
    let exits = plans.exits.map {
      ExitReport(
        at: $0.at, why: CodedText($0), footprint: $0.footprint.bytes, lastWords: $0.lastWords)
    }
    report.exits = exits.isEmpty ? nil : exits
    report.livenessFailure = plans.livenessFailure.map { CodedText("probe_failed", $0) }
    report.nextWake = plans.nextWake
    report.answeredAsleep = plans.answeredAsleep
  }

  private static let waitsForWorker = "waits_for_worker"

  /// Why the worker is terminated, if that will change or was planned to change; else nil.
  var plan: CodedText? {
    switch plans.restart {
    case .backingOff(let due, let reason):
      let seconds = max(0, ((due - now).seconds).rounded(.up))
      return CodedText("backing_off", "restarts in \(Duration.seconds(seconds).text): \(reason)")
    case .waitingForMemory(let reason):
      return CodedText("waits_for_memory", "restarts when memory is available: \(reason)")
    case nil: break
    }
    if let awaited = plans.awaited { return CodedText(Self.waitsForWorker, awaited) }
    return plans.problem.map { CodedText(plans.hasGivenUp ? "gave_up" : "not_started", $0) }
  }
}
