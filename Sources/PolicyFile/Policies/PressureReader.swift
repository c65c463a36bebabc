import Policy
import YAML

/// `pressure:`. A level that is written lists all its conditions; it isn't mixed with the base's.
struct PressureReader {
  var reader: MappingReader

  func read(_ rules: inout PressureRules) {
    level("warning", &rules.warning)
    level("urgent", &rules.urgent)
    level("critical", &rules.critical)
    reader.read("sustained_for", into: &rules.sustainedFor, as: .duration)
    reader.read("clear_after", into: &rules.clearAfter, as: .duration)
    reader.read("warn_once_per", into: &rules.warnOncePer, as: .choice)
    reader.read("stalls_count_below", into: &rules.stallsCountBelow, as: .percent)
    reader.read("terminate_after", into: &rules.terminateAfter, as: .duration)
    reader.read("swap", into: &rules.swap, as: Converter.percent.map(Optional.some))
  }

  private func level(_ key: String, _ target: inout PressureCondition?) {
    if let explored = reader.exploring(key, or: "never") {
      var condition = PressureCondition()
      return conditions(explored, &condition, of: key, at: nil)
    }
    guard let node = reader.node(key) else { return }
    if node.scalar?.string == "never" {
      target = nil
      return
    }
    guard !node.isEmpty, let inner = reader.reader(of: node, called: key) else {
      if node.isEmpty { noCondition(key, node) }
      return
    }
    var condition = PressureCondition()
    conditions(inner, &condition, of: key, at: node.position)
    if inner.order.isEmpty { noCondition(key, node) }
    target = condition
  }

  private func conditions(
    _ inner: MappingReader, _ condition: inout PressureCondition, of key: String,
    at position: Position?
  ) {
    inner.read(
      "available_below", into: &condition.availableBelow,
      as: Converter<PressureCondition.Amount>.amount.map(Optional.some))
    inner.section("stall") { stall($0, &condition, key: key, at: position) }
    inner.finish()
  }

  private func noCondition(_ key: String, _ node: YAMLNode) {
    reader.sink.error(
      at: node.position, "`\(key)` lists no condition that would raise this level",
      suggestion: "write `\(key): { available_below: 10% }`, or `\(key): never`")
  }

  private func stall(
    _ inner: MappingReader, _ condition: inout PressureCondition, key: String, at level: Position?
  ) {
    let some = inner.read("some", as: .percent.notZero)
    let full = inner.read("full", as: .percent.notZero)
    var window = Duration.seconds(2)
    inner.read("window", into: &window, as: Self.window)
    if window.wholeNanoseconds % 2_000_000_000 != 0 {
      inner.sink.warning(
        at: inner.places[inner.path(of: "window")],
        "a window that is not a multiple of `2s` needs a daemon with CAP_SYS_RESOURCE",
        suggestion: "write `2s`, `4s`, `6s`, `8s` or `10s`")
    }
    if inner.position(ofKey: "some") == nil, inner.position(ofKey: "full") == nil {
      inner.sink.error(
        at: reader.places[inner.path(of: "window")] ?? inner.own ?? level,
        "`stall` needs `some` or `full`, the share of the window that counts as a stall",
        suggestion: "write `stall: { some: 10%, window: 2s }`")
    }
    condition.someStall = some.map { Stall(percent: $0, window: window) }
    condition.fullStall = full.map { Stall(percent: $0, window: window) }
  }

  /// What the kernel accepts (Documentation/accounting/psi.rst).
  private static var window: Converter<Duration> {
    Converter.duration.checked { window in
      (.milliseconds(500) ... .seconds(10)).contains(window)
        ? nil : Problem(message: "must be from `500ms` to `10s`, not `\(window.policyText)`")
    }
  }
}
