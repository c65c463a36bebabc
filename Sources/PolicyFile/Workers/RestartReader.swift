import Policy
import YAML

/// Reads `restart:`, a word or a mapping.
struct RestartReader {
  var reader: MappingReader

  func read(_ key: String, into rules: inout RestartRules) {
    if let shape = reader.shape {
      let inner = MappingShape()
      var ignored = RestartRules()
      details(MappingReader(exploring: inner, path: reader.path(of: key)), &ignored)
      return shape.add(
        key, .either([Converter<RestartRules.Condition>.choice.shape, .mapping(inner)]))
    }
    guard let node = reader.node(key) else { return }
    guard case .mapping = node, let inner = reader.reader(of: node, called: key) else {
      rules.condition = reader.convert(node, called: key, as: .choice) ?? rules.condition
      return
    }
    details(inner, &rules)
    inner.finish()
    if inner.position(ofKey: "when") == nil {
      inner.sink.error(
        at: inner.own, "`\(key)` needs `when`",
        suggestion: "write `when: on-failure`, `always` or `unless-stopped`")
    }
  }

  private func details(_ inner: MappingReader, _ rules: inout RestartRules) {
    inner.read("when", into: &rules.condition, as: .choice)
    inner.section("backoff") { section in
      section.read("initial", into: &rules.backoff.initial, as: .duration)
      // A longer first one alone means that.
      if section.position(ofKey: "max") == nil {
        rules.backoff.max = max(rules.backoff.max, rules.backoff.initial)
      }
      section.read("max", into: &rules.backoff.max, as: .duration)
      section.read("factor", into: &rules.backoff.factor, as: .factor)
      if rules.backoff.max < rules.backoff.initial {
        section.sink.error(
          at: section.places[section.path(of: "max")],
          "`max` (\(rules.backoff.max.policyText)) is under `initial`"
            + " (\(rules.backoff.initial.policyText))")
      }
    }
    giveUp(inner, &rules)
  }

  /// `never`, or `{ after: 5, within: 10m }`.
  private func giveUp(_ reader: MappingReader, _ rules: inout RestartRules) {
    switch reader.mapping("give_up", or: "never") {
    case nil: break
    case .word: rules.giveUp = nil
    case .mapping(let inner):
      bounds(inner, &rules)
      inner.finish()
    }
  }

  private func bounds(_ inner: MappingReader, _ rules: inout RestartRules) {
    var giveUp = RestartRules.GiveUp()
    inner.read("after", into: &giveUp.restarts, as: .integer(0...1_000))
    inner.read("within", into: &giveUp.window, as: .duration.notZero)
    rules.giveUp = giveUp
  }
}

extension Converter where Value == Double {
  /// 1–100, decimals allowed.
  fileprivate static var factor: Converter {
    .scalar("a factor from 1 to 100", shape: .number(1...100)) { text in
      guard let quantity = Quantity(text), !quantity.negative, quantity.unit.isEmpty,
        let thousandths = quantity.scaled(by: 1_000), (1_000...100_000).contains(thousandths)
      else { return .failure(.wrongKind) }
      return .success(Double(thousandths) / 1_000)
    }
  }
}
