import Control
import Lifecycle
import Policy

/// Sets the engine's pressure level for a while, so that the operator can try a policy (`dormouse
/// pressure set`).
struct PressureSetting {
  /// The longest time for which a level may be set, in seconds. A forgotten level ends the next
  /// day.
  static let maxSeconds = 86_400.0

  let driver: EngineDriver

  /// Sets the level.
  ///
  /// - Parameters:
  ///   - level: a level's name, or `auto` for the one that is measured.
  ///   - seconds: how long it is set; nil for 30 s.
  func set(
    _ level: String?, for seconds: Double?
  ) -> (result: ControlResponse.Result, text: String) {
    guard let name = level else { return (.badRequest, "`setPressure` needs a level") }
    if name == "auto" { return unset() }
    guard let level = PressureLevel.allCases.first(where: { $0.name == name }), level > .normal
    else { return (.badRequest, "the level is `warning`, `urgent`, `critical` or `auto`") }
    let seconds = seconds ?? 30
    guard seconds > 0, seconds <= Self.maxSeconds else {
      return (.badRequest, "the time must be more than 0 and at most 24 h")
    }
    let time = Duration.seconds(seconds)
    driver.send(.pressureSet(level, for: time))
    let engine = driver.state
    let worse =
      engine.pressure > level ? "; measured: \(engine.pressure.name), which is higher" : ""
    let shadow =
      engine.policy.mode == .shadow ? "; shadow mode: decisions are logged, not applied" : ""
    return (.done, "memory pressure is at least \(level.name) for \(time.text)\(worse)\(shadow)")
  }

  private func unset() -> (result: ControlResponse.Result, text: String) {
    let was = driver.state.setPressure
    driver.send(.pressureSet(.normal, for: .zero))
    let engine = driver.state
    let now = "memory pressure is \(engine.pressure.name)"
    let time = engine.policy.pressure.clearAfter.text
    if let level = engine.fallingPressure {
      let ended = was == nil ? "no level is set any more: " : ""
      return (.done, "\(ended)\(now), and returns to \(level.name) within \(time)")
    }
    return (.done, was == nil ? "no level was set: \(now), as measured" : now)
  }
}
