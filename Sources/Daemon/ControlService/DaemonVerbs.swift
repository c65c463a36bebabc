import Control
import Lifecycle
import Policy

// The verbs about the daemon as a whole.
extension ControlService {
  private var driver: EngineDriver { reloader.driver }

  /// Ends the daemon, by `shutdown` or `leave`. `ControlServer.announceEnd` answers the request.
  func end(by verb: ControlRequest.Verb) {
    if verb == .leave { return ending.leave() }
    ending.log(
      .notice, "stopping: requested by `dormouse shutdown`; all workers are stopped first")
    ending.end()
  }

  /// Tests what the machine allows the daemon. It takes a second or more.
  func doctor(_ call: ControlCall) {
    examination.ask { outcome in
      switch outcome ?? .failure(.overdue) {
      case .success(let report):
        let context = status.daemon.context(user: report.user, at: ending.timers.now)
        call.answer(.done, report.verdict.text) {
          $0.doctor = DaemonExamination(context: context, report: report)
        }
      case .failure(let failure): call.answer(.failed, failure.description)
      }
    }
  }

  /// Carries out `reload` or its preview.
  func reload(_ call: ControlCall) {
    reloader.reload(
      allowEmpty: call.request.allowEmpty == true, isPreview: call.request.verb == .previewReload
    ) { call.answer($0.isDone ? .done : .refused, $0.text) }
  }

  func previewAdoption(_ call: ControlCall) {
    let preview = reloader.rules.preview()
    jobs.run(about: "preview of rules", within: .seconds(20), preview.perform) { outcome in
      guard case .done(let report?) = outcome else {
        return call.answer(.failed, "the processes of this machine can't be read in time")
      }
      call.answer(.done, report.text) { $0.adoption = report }
    }
  }
}

// `dormouse pressure set` sets the engine's pressure level for a while, so that the operator can
// try a policy.
extension ControlService {
  /// The longest time for which a level may be set, in seconds. A forgotten level ends the next
  /// day.
  private static let maxSeconds = 86_400.0

  /// Sets the level, for 30 s if the request names no time.
  func setPressure(_ call: ControlCall) {
    if ending.phase.isClosing { return call.answerEnding() }
    guard let name = call.request.level else {
      return call.answer(.badRequest, "`setPressure` needs a level")
    }
    // The measured level counts again.
    if name == "auto" { return call.answer(.done, unsetPressure()) }
    guard let level = PressureLevel.allCases.first(where: { $0.name == name }), level > .normal
    else {
      return call.answer(.badRequest, "the level is `warning`, `urgent`, `critical` or `auto`")
    }
    let seconds = call.request.seconds ?? 30
    guard seconds > 0, seconds <= Self.maxSeconds else {
      return call.answer(.badRequest, "the time must be more than 0 and at most 24 h")
    }
    let time = Duration.seconds(seconds)
    driver.send(.pressureSet(level, for: time))
    let engine = driver.state
    let worse =
      engine.pressure > level ? "; measured: \(engine.pressure.name), which is higher" : ""
    let shadow =
      engine.policy.mode == .shadow ? "; shadow mode: decisions are logged, not applied" : ""
    call.answer(
      .done, "memory pressure is at least \(level.name) for \(time.text)\(worse)\(shadow)")
  }

  private func unsetPressure() -> String {
    let was = driver.state.setPressure
    driver.send(.pressureSet(.normal, for: .zero))
    let engine = driver.state
    let now = "memory pressure is \(engine.pressure.name)"
    let time = engine.policy.pressure.clearAfter.text
    if let level = engine.fallingPressure {
      let ended = was == nil ? "no level is set any more: " : ""
      return "\(ended)\(now), and returns to \(level.name) within \(time)"
    }
    return was == nil ? "no level was set: \(now), as measured" : now
  }
}
