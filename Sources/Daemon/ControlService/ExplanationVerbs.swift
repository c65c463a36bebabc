import Control
import Hibernation
import Lifecycle
import Policy
import PolicyFile

// The verbs that ask for reasons: `explain`, its `--savings`, and `policy`.
extension ControlService {
  private var facts: WorkerFactsReader { status.facts }
  var engine: Engine { status.daemon.driver.state }
  var origins: Origins { status.daemon.configuration.current.origins }
  var isWrapper: Bool { facts.program != nil }
  var now: Instant { facts.clock.now }
  private var remedies: RemedyReporter {
    RemedyReporter(engine: engine, origins: origins, isWrapper: isWrapper, now: now)
  }

  func explain(_ call: ControlCall) {
    guard let name = call.request.worker else {
      var ranking = RankingReport(engine.ranking(at: now))
      ranking.isShadow = engine.policy.mode == .shadow ? true : nil
      return call.answer(.done, "the order of termination and hibernation") {
        $0.ranking = ranking
      }
    }
    let id = WorkerID(name)
    let facts = facts.read(id)
    guard var report = explanation(of: id, facts), let state = engine.state(of: id) else {
      return call.answerUnknown(name)
    }
    (report.rule, report.activity) = (facts?.rule, self.facts.activity(of: id))
    report.remedy = remedies.remedy(of: id, facts, activity: report.activity)
    call.answer(.done, "\(name) is \(state.text): \(report.because.text)") {
      $0.explanation = report
    }
  }

  /// Why a worker is in its state; nil if there is no such worker.
  ///
  /// - Parameter facts: the worker's facts. Their plans are the reason for a worker that doesn't
  ///   run, as in `ps`.
  func explanation(of id: WorkerID, _ facts: WorkerFacts? = nil) -> ExplanationReport? {
    guard let explanation = engine.explanation(of: id, at: now) else { return nil }
    var report = ExplanationReport(explanation, at: now)
    if let unwatched = facts?.unwatched, !unwatched.isEmpty { report.unwatched = unwatched }
    let stoppedWork = facts?.worker.wakeWatch?.stoppedWork
    report.stoppedWork = stoppedWork.map { CodedText($0.code, $0.sentence) }
    if explanation.state == .terminated, let plan = facts?.plan(at: now) {
      report.because = plan
      report.key = nil
    }
    return report
  }

  /// Answers `explain --savings`: all workers that keep memory, and why each isn't asleep.
  func explainSavings(_ call: ControlCall) {
    status.report(ControlRequest(id: call.request.id, verb: .ps)) { response in
      explain((response.workers ?? []).filter(KeptMemoryReport.keepsMemory), call)
    }
  }

  private func explain(_ workers: [WorkerReport], _ call: ControlCall) {
    var entries: [KeptMemoryReport.Worker] = []
    // The number of answers that are still missing. The loop over the workers counts as one.
    var missing = 1
    func add(_ worker: WorkerReport, _ explanation: ExplanationReport?) {
      var entry = KeptMemoryReport.Worker(
        worker: worker.name, state: explanation?.state ?? worker.state,
        footprint: worker.footprint, next: explanation?.next,
        obstacles: explanation?.obstacles ?? [], isShadow: explanation?.isShadow ?? false)
      entry.remedy = explanation?.remedy
      entries.append(entry)
    }
    func didAnswer() {
      missing -= 1
      guard missing == 0 else { return }
      call.answer(.done, "the workers that keep memory") {
        $0.kept = KeptMemoryReport(workers: entries)
      }
    }
    for worker in workers {
      guard status.wrappers.isWrapped(worker.name) else {
        let id = WorkerID(worker.name)
        var explanation = explanation(of: id)
        explanation?.remedy = remedies.remedy(
          of: id, facts.read(id), activity: facts.activity(of: id))
        add(worker, explanation)
        continue
      }
      missing += 1
      let request = ControlRequest(id: call.request.id, verb: .explain, worker: worker.name)
      status.wrappers.relay(request, timeout: Self.statusTimeout) { answer in
        add(worker, answer.explanation)
        didAnswer()
      }
    }
    didAnswer()
  }

  func policyInForce(_ call: ControlCall) {
    guard let name = call.request.worker else {
      return call.answer(.done, "the policy in effect") {
        $0.policy = reports(of: EffectivePolicy(engine.policy, origins: origins))
      }
    }
    let id = WorkerID(name)
    guard let worker = facts.read(id)?.worker, let snapshot = engine.snapshot(of: id) else {
      return call.answerUnknown(name)
    }
    call.answer(.done, "the policy in effect for \(name)") {
      $0.policy = policyValues(
        of: snapshot, worker.configuration.policy, isChosen: worker.external?.chosen != nil)
    }
  }
}
