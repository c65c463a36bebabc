import Control
import Lifecycle
import Policy

/// `explain --savings`: all workers that keep memory, and why each isn't asleep, in one answer.
struct KeptMemoryReporter {
  let driver: EngineDriver
  let host: any ControlHost
  let status: StatusReporter

  /// A wrapper that doesn't answer by then leaves its worker without reasons.
  private static let patience = Duration.seconds(2)

  func answer(_ call: ControlCall) {
    status.report(ControlRequest(id: call.request.id, verb: .ps)) { response in
      explain(response.workers ?? [], call)
    }
  }

  private func explain(_ workers: [WorkerReport], _ call: ControlCall) {
    let reporter = ExplanationReporter(engine: driver.state, now: host.now)
    let policy = host.policyFacts()
    let remedies = RemedyReporter(
      engine: driver.state, origins: policy.origins, isWrapper: policy.isWrapper, now: host.now)
    let gathered = Gathered(call)
    for worker in workers where KeptMemoryReport.keepsMemory(worker) {
      guard host.isWrapped(worker.name) else {
        let id = WorkerID(worker.name)
        var found = reporter.explanation(of: id)
        let facts = host.facts(of: id)
        found?.report.remedy = remedies.remedy(of: id, facts, activity: facts?.activity?())
        gathered.add(worker, found?.report)
        continue
      }
      gathered.missing += 1
      let request = ControlRequest(id: call.request.id, verb: .explain, worker: worker.name)
      host.relay(request, patience: Self.patience) { answer in
        gathered.missing -= 1
        gathered.add(worker, answer.explanation)
        gathered.answerIfComplete()
      }
    }
    gathered.missing -= 1
    gathered.answerIfComplete()
  }

  /// The entries, until the last wrapper has answered. Belongs to the loop's thread.
  private final class Gathered {
    private let call: ControlCall
    private var workers: [KeptMemoryReport.Worker] = []
    /// Answers that are still to come; one stands for the loop over the workers itself.
    var missing = 1

    init(_ call: ControlCall) { self.call = call }

    func add(_ worker: WorkerReport, _ why: ExplanationReport?) {
      var entry = KeptMemoryReport.Worker(
        worker: worker.name, state: why?.state ?? worker.state, footprint: worker.footprint,
        next: why?.next, obstacles: why?.obstacles ?? [], isShadow: why?.isShadow ?? false)
      entry.remedy = why?.remedy
      workers.append(entry)
    }

    func answerIfComplete() {
      guard missing == 0 else { return }
      var response = ControlResponse(
        id: call.request.id, result: .done, text: "the workers that keep memory")
      response.kept = KeptMemoryReport(workers: workers)
      call.respond(response)
    }
  }
}
