import Policy

/// The keys of `restart`, which is a word or a mapping.
enum RestartKeys {
  static var key: Key<WorkerConfiguration> {
    Key<WorkerConfiguration>(
      "restart", \.restartIfSet,
      short: Converter.choice.map({ RestartRules($0) }, back: \.condition),
      isShort: { $0 == RestartRules($0.condition) }, over: RestartRules(),
      about: "when it is started again after its end; see [Restarts](#restarts)",
      check: { inner, _ in
        guard inner.position(ofKey: "when") == nil else { return }
        inner.sink.error(
          at: inner.start, "`restart` needs `when`",
          suggestion: "write `when: on-failure`, `always` or `unless-stopped`")
      }
    ) {
      Key<RestartRules>(
        "when", \.condition, as: .choice,
        about: """
          after which ends: none (`no`), a termination for lack of memory (`after-shortage`), a \
          failure (`on-failure`), or each (`always`, `unless-stopped`)
          """)
      backoff.omitted(if: RestartRules())
      giveUp.omitted(if: RestartRules())
    }
  }

  static func text(_ rules: RestartRules) -> YAMLText {
    var worker = WorkerConfiguration(name: "", command: [])
    worker.restart = rules
    return key.write(worker) ?? .mapping([])
  }

  private static var backoff: Key<RestartRules> {
    Key<RestartRules>("backoff", about: "the wait before a restart", check: checkBackoff) {
      Key<RestartRules>(
        "initial", \.backoff.initial, as: .duration,
        about: "the wait before the first restart. Default: 1s")
      Key<RestartRules>(
        "max", \.backoff.max, as: .duration,
        about: "the longest wait. A run longer than this resets the back-off. Default: 1m")
      Key<RestartRules>(
        "factor", \.backoff.factor, as: .factor,
        about: "each wait is this many times as long as the one before, 1 to 100. Default: 2")
    }
  }

  private static func checkBackoff(_ inner: MappingReader, _ rules: inout RestartRules) {
    guard rules.backoff.max < rules.backoff.initial else { return }
    // An initial delay above the default maximum, without `max`, means that both are equal.
    guard inner.position(ofKey: "max") != nil else {
      rules.backoff.max = rules.backoff.initial
      return
    }
    inner.sink.error(
      at: inner.positions[inner.path(of: "max")],
      "`max` (\(rules.backoff.max.policyText)) is under `initial`"
        + " (\(rules.backoff.initial.policyText))")
  }

  private static var giveUp: Key<RestartRules> {
    Key<RestartRules>(
      "give_up", \.giveUp, or: "never", over: RestartRules.GiveUp(),
      keys: [
        Key<RestartRules.GiveUp>(
          "after", \.restarts, as: .integer(0...1_000),
          about: "the number of restarts, 0 to 1000. Default: 5"),
        Key<RestartRules.GiveUp>(
          "within", \.window, as: .duration.notZero,
          about: "the time within which these restarts count. Default: 10m"),
      ],
      about: "after how many restarts the worker isn't started again. `never`: it always is")
  }
}

extension WorkerConfiguration {
  fileprivate var restartIfSet: RestartRules? {
    get { restart }
    set { restart = newValue ?? restart }
  }
}

extension Converter where Value == Double {
  /// A factor from 1 to 100. Decimals are allowed.
  fileprivate static var factor: Converter {
    .scalar(
      "a factor from 1 to 100", shape: .number(1...100),
      write: { .plain(String(percentText($0).dropLast())) }
    ) { text in
      guard let quantity = Quantity(text), !quantity.negative, quantity.unit.isEmpty,
        let thousandths = quantity.scaled(by: 1_000), (1_000...100_000).contains(thousandths)
      else { return .failure(.wrongKind) }
      return .success(Double(thousandths) / 1_000)
    }
  }
}
