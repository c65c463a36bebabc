import Control
import Hibernation
import Lifecycle
import Policy
import PolicyFile

/// The verbs that ask for reasons: `explain`, its `--savings`, and `policy`. It belongs to the
/// event loop's thread.
struct ExplanationVerbs {
  let driver: EngineDriver
  let configuration: ConfigurationInForce
  let facts: WorkerFactsReader
  let status: StatusReporter
  /// Overrides the policies.
  let resumeOverride: ResumePreference?

  private var isWrapper: Bool { facts.program != nil }
  private var reporter: ExplanationReporter {
    ExplanationReporter(engine: driver.state, now: facts.clock.now)
  }
  private var remedies: RemedyReporter {
    RemedyReporter(
      engine: driver.state, origins: configuration.current.origins, isWrapper: isWrapper,
      now: facts.clock.now)
  }

  func explain(_ call: ControlCall) {
    guard let name = call.request.worker else {
      return call.answer(.done, "the order of termination and hibernation") {
        $0.ranking = reporter.ranking()
      }
    }
    let id = WorkerID(name)
    let facts = facts.read(id)
    guard let (explanation, state) = reporter.explanation(of: id, facts) else {
      return call.answerUnknown(name)
    }
    var report = explanation
    (report.rule, report.activity) = (facts?.rule, self.facts.activity(of: id))
    report.remedy = remedies.remedy(of: id, facts, activity: report.activity)
    call.answer(.done, "\(name) is \(state.text): \(report.because.text)") {
      $0.explanation = report
    }
  }

  /// Explains all workers that keep memory.
  func explainSavings(_ call: ControlCall) {
    status.report(ControlRequest(id: call.request.id, verb: .ps)) { response in
      KeptMemoryReporter(
        reporter: reporter, remedies: remedies, facts: facts, wrappers: status.wrappers
      ).answer(call, about: response.workers ?? [])
    }
  }

  func policyInForce(_ call: ControlCall) {
    let reporter = PolicyReporter(
      engine: driver.state, origins: configuration.current.origins,
      resumeOverride: resumeOverride, isWrapper: isWrapper, now: facts.clock.now)
    guard let name = call.request.worker else {
      return call.answer(.done, "the policy in effect") { $0.policy = reporter.machine() }
    }
    let id = WorkerID(name)
    guard let worker = facts.read(id)?.worker, let snapshot = driver.state.snapshot(of: id) else {
      return call.answerUnknown(name)
    }
    call.answer(.done, "the policy in effect for \(name)") {
      $0.policy = reporter.worker(
        snapshot, worker.configuration.policy, isChosen: worker.external?.chosen != nil)
    }
  }
}
