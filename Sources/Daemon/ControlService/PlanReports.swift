import Control
import Glibc
import Lifecycle
import Policy

// What `ps` and `status` tell of what is planned for a worker.

extension Daemon {
  func describePlans(
    of runtime: WorkerRuntime, _ report: inout WorkerReport, at now: Instant
  ) {
    if report.state == WorkerState.terminated.rawValue {
      report.reason = plan(of: runtime.id, at: now) ?? report.reason
      if case .backingOff(let due, _) = restarts.plan(of: runtime.id) {
        report.restartsInSeconds = max(0, (due - now).seconds)
      }
    }
    let count = restarts.restarts(of: runtime.id)
    report.restarts = count > 0 ? count : nil
    let exits = restarts.exits(of: runtime.id) ?? []
    report.exits =
      exits.isEmpty
      ? nil
      : exits.map {
        ExitReport(
          at: $0.at, why: CodedText($0), footprint: $0.footprint.bytes, lastWords: $0.lastWords)
      }
    report.livenessFailure = runtime.liveness?.lastFailure.map { CodedText("probe_failed", $0) }
    report.nextWake = schedules.next(
      runtime.configuration.wakeAt, after: Int64(time(nil)))
    report.answeredAsleep = runtime.answering?.count
  }

  private func plan(of id: WorkerID, at now: Instant) -> CodedText? {
    switch restarts.plan(of: id) {
    case .backingOff(let due, let why):
      let seconds = max(0, ((due - now).seconds).rounded(.up))
      return CodedText("backing_off", "backing off \(Int(seconds)) s: \(why)")
    case .waitingForMemory(let why):
      return CodedText("waits_for_memory", "comes back when there is memory: \(why)")
    case nil: break
    }
    if let awaited = dependencyStarter.awaited(by: id) {
      return CodedText("waits_for_worker", awaited)
    }
    return restarts.problem(of: id).map { CodedText("not_started", $0) }
  }
}
