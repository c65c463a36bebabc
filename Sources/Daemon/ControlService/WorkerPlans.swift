import Control
import Lifecycle
import Policy

// What `ps` and `status` show about a worker's earlier runs and about the plans for it.
extension WorkerFacts {
  func describeRuns(in report: inout WorkerReport, at now: Instant) {
    if report.state == WorkerState.terminated.rawValue {
      report.reason = plan(at: now) ?? report.reason
      if report.reason.code == Self.waitsForWorker { report.waitsFor = awaited?.workers }
      if case .backingOff(let due, _) = history.plan {
        report.restartsInSeconds = max(0, (due - now).seconds)
      }
    }
    report.restarts = history.restarts > 0 ? history.restarts : nil
    let exits = history.exits.map {
      ExitReport(
        at: $0.at, why: CodedText($0), footprint: $0.footprint.bytes, lastWords: $0.lastWords)
    }
    report.exits = exits.isEmpty ? nil : exits
  }

  private static let waitsForWorker = "waits_for_worker"

  /// Why the worker is terminated, if that will change or was planned to change; else nil.
  func plan(at now: Instant) -> CodedText? {
    switch history.plan {
    case .backingOff(let due, let reason):
      let seconds = max(0, ((due - now).seconds).rounded(.up))
      return CodedText("backing_off", "restarts in \(Duration.seconds(seconds).text): \(reason)")
    case .waitingForMemory(let reason):
      return CodedText("waits_for_memory", "restarts when memory is available: \(reason)")
    case nil: break
    }
    if let awaited { return CodedText(Self.waitsForWorker, awaited.text) }
    return history.problem.map { CodedText(history.hasGivenUp ? "gave_up" : "not_started", $0) }
  }
}
