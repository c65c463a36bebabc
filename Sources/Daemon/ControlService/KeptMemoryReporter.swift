import Control
import Lifecycle

/// Answers `explain --savings`: all workers that keep memory, and why each isn't asleep.
struct KeptMemoryReporter {
  let reporter: ExplanationReporter
  let remedies: RemedyReporter
  let facts: WorkerFactsReader
  let wrappers: RegisteredWrappers

  /// How long to wait for a wrapper. A worker whose wrapper doesn't answer by then is reported
  /// without reasons.
  private static let timeout = Duration.seconds(2)

  func answer(_ call: ControlCall, about workers: [WorkerReport]) {
    let pending = PendingAnswer(call)
    for worker in workers where KeptMemoryReport.keepsMemory(worker) {
      guard wrappers.isWrapped(worker.name) else {
        let id = WorkerID(worker.name)
        var explanation = reporter.explanation(of: id)
        explanation?.report.remedy = remedies.remedy(
          of: id, facts.read(id), activity: facts.activity(of: id))
        pending.add(worker, explanation?.report)
        continue
      }
      pending.missing += 1
      let request = ControlRequest(id: call.request.id, verb: .explain, worker: worker.name)
      wrappers.relay(request, timeout: Self.timeout) { answer in
        pending.missing -= 1
        pending.add(worker, answer.explanation)
        pending.answerIfComplete()
      }
    }
    pending.missing -= 1
    pending.answerIfComplete()
  }

  /// The entries that have come so far, until the last wrapper has answered. It belongs to the
  /// event loop's thread.
  private final class PendingAnswer {
    private let call: ControlCall
    private var workers: [KeptMemoryReport.Worker] = []
    /// The number of answers that are still missing. The loop over the workers counts as one.
    var missing = 1

    init(_ call: ControlCall) { self.call = call }

    func add(_ worker: WorkerReport, _ explanation: ExplanationReport?) {
      var entry = KeptMemoryReport.Worker(
        worker: worker.name, state: explanation?.state ?? worker.state,
        footprint: worker.footprint, next: explanation?.next,
        obstacles: explanation?.obstacles ?? [], isShadow: explanation?.isShadow ?? false)
      entry.remedy = explanation?.remedy
      workers.append(entry)
    }

    func answerIfComplete() {
      guard missing == 0 else { return }
      call.answer(.done, "the workers that keep memory") {
        $0.kept = KeptMemoryReport(workers: workers)
      }
    }
  }
}
