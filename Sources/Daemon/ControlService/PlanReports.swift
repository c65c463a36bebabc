import Control
import Glibc
import Lifecycle
import Policy

// What `ps` and `status` tell of what is planned for a worker.

extension Daemon {
  func describePlans(
    of runtime: WorkerRuntime, _ report: inout WorkerReport, at now: Instant
  ) {
    let runs = runtime.runs
    if report.state == WorkerState.terminated.rawValue {
      report.reason = plan(of: runtime, at: now) ?? report.reason
      report.restartsInSeconds = runs.due.map { max(0, ($0.at - now).seconds) }
    }
    report.restarts = runs.restarts > 0 ? runs.restarts : nil
    report.exits =
      runs.exits.isEmpty
      ? nil
      : runs.exits.map {
        ExitReport(
          at: $0.at, why: CodedText($0), footprint: $0.footprint.bytes, lastWords: $0.lastWords)
      }
    report.livenessFailure = runtime.liveness?.lastFailure.map { CodedText("probe_failed", $0) }
    report.nextWake = schedules.next(
      runtime.configuration.wakeAt, after: Int64(time(nil)))
    report.answeredAsleep = runtime.answering?.count
  }

  private func plan(of runtime: WorkerRuntime, at now: Instant) -> CodedText? {
    let runs = runtime.runs
    if let due = runs.due {
      let seconds = max(0, ((due.at - now).seconds).rounded(.up))
      return CodedText("backing_off", "backing off \(Int(seconds)) s: \(due.why)")
    }
    if let why = runs.waitsForMemory {
      return CodedText("waits_for_memory", "comes back when there is memory: \(why)")
    }
    if let awaited = dependencyStarter.awaited(by: runtime.id) {
      return CodedText("waits_for_worker", awaited)
    }
    return runs.problem.map { CodedText("not_started", $0) }
  }
}
