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
      var response = ControlResponse(
        id: call.request.id, result: .done, text: "the order of termination and hibernation")
      response.ranking = reporter.ranking()
      return call.respond(response)
    }
    let id = WorkerID(name)
    let facts = facts.read(id)
    guard let (explanation, state) = reporter.explanation(of: id, facts) else {
      return call.answerUnknown(name)
    }
    var report = explanation
    let text = "\(name) is \(state.text): \(report.because.text)"
    var response = ControlResponse(id: call.request.id, result: .done, text: text)
    (report.rule, report.activity) = (facts?.rule, self.facts.activity(of: id))
    report.remedy = remedies.remedy(of: id, facts, activity: report.activity)
    response.explanation = report
    call.respond(response)
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
    var response = ControlResponse(id: call.request.id, result: .done, text: "the policy in effect")
    if let name = call.request.worker {
      let id = WorkerID(name)
      guard let facts = facts.read(id), let snapshot = driver.state.snapshot(of: id) else {
        return call.answerUnknown(name)
      }
      response.text += " for \(name)"
      response.policy = reporter.worker(
        snapshot, facts.worker.configuration.policy,
        isChosen: facts.worker.external?.chosen != nil)
    } else {
      response.policy = reporter.machine()
    }
    call.respond(response)
  }
}
