import Control
import Lifecycle
import Policy

/// The verbs about the daemon as a whole. It belongs to the event loop's thread.
struct DaemonVerbs {
  let ending: DaemonEnd
  let reloader: ConfigurationReloader
  let examination: SelfExamination
  let reporter: DaemonReporter
  let jobs: LoopJobs

  var driver: EngineDriver { reloader.driver }

  /// Ends the daemon, by `shutdown` or `leave`.
  func end(by verb: ControlRequest.Verb) {
    if verb == .leave { return ending.leave() }
    ending.log(
      .notice, "stopping: requested by `dormouse shutdown`; all workers are stopped first")
    ending.end()
  }

  /// Tests what the machine allows the daemon. It takes a second or more.
  func doctor(_ call: ControlCall) {
    examination.examine { outcome in
      switch outcome {
      case .success(let report):
        let context = reporter.context(user: report.user, at: ending.timers.now)
        call.answer(.done, report.verdict.text) {
          $0.doctor = DaemonExamination(context: context, report: report)
        }
      case .failure(let failure): call.answer(.failed, failure.description)
      }
    }
  }

  /// Carries out `reload` or its preview.
  func reload(_ call: ControlCall) {
    let allowEmpty = call.request.allowEmpty == true
    let answer = { (outcome: ReloadOutcome) in
      call.answer(outcome.isDone ? .done : .refused, outcome.text)
    }
    if call.request.verb == .reload {
      reloader.reload(allowEmpty: allowEmpty, then: answer)
    } else {
      reloader.preview(allowEmpty: allowEmpty, then: answer)
    }
  }

  func previewAdoption(_ call: ControlCall) {
    let preview = reloader.rules.preview(footprint: driver.state.footprint)
    jobs.run(about: "preview of rules", within: .seconds(20), preview.perform) { outcome in
      guard case .done(let report?) = outcome else {
        return call.answer(.failed, "the processes of this machine can't be read in time")
      }
      call.answer(.done, report.text) { $0.adoption = report }
    }
  }
}
