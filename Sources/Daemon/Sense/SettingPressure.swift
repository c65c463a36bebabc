import Control
import Lifecycle
import Policy

// `dormouse pressure set`: the engine is told, as of everything else, and so the journal.

extension Daemon {
  /// Longest that a level may be set: who forgets it has his workers back the next day.
  static let maxSetPressure = 86_400.0

  func setPressure(_ request: ControlRequest) -> ControlResponse {
    func answer(_ result: ControlResponse.Result, _ text: String) -> ControlResponse {
      ControlResponse(id: request.id, result: result, text: text)
    }
    if isEnding || isLeaving { return answer(.refused, "the daemon is ending") }
    guard let name = request.level else {
      return answer(.badRequest, "`setPressure` needs a level")
    }
    if name == "auto" {
      let was = engine.setPressure
      driver.send(.pressureSet(.normal, for: .zero))
      let now = "the pressure is \(engine.pressure.name)"
      guard was != nil else { return answer(.done, "nobody had set it: \(now), as measured") }
      let time = engine.policy.pressure.clearAfter.spoken
      let falls = engine.pressure > .normal ? ", and falls to what is measured after \(time)" : ""
      return answer(.done, now + falls)
    }
    guard let level = PressureLevel.allCases.first(where: { $0.name == name }), level > .normal
    else {
      return answer(.badRequest, "the level is `warning`, `urgent`, `critical` or `auto`")
    }
    let seconds = request.seconds ?? 30
    guard seconds > 0, seconds <= Self.maxSetPressure else {
      return answer(.badRequest, "a level is set for more than nothing, and a day at most")
    }
    let time = Duration.seconds(seconds)
    driver.send(.pressureSet(level, for: time))
    let worse = engine.pressure > level ? "; it is \(engine.pressure.name), which is worse" : ""
    let shadow =
      engine.policy.mode == .shadow ? "; in shadow mode it is only told what follows" : ""
    return answer(
      .done, "the pressure is at least \(level.name) for \(time.spoken)\(worse)\(shadow)")
  }
}
