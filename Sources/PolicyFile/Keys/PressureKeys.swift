import Policy
import YAML

// This file has the keys of `pressure` and `ladder`.

extension PolicyKeys {
  static var pressure: PolicyKey {
    PolicyKey("pressure", about: "the conditions of each pressure level", holder: .machine) {
      level("warning", \.pressure.warning, about: "the first level")
      level("urgent", \.pressure.urgent, about: "the second level")
      level("critical", \.pressure.critical, about: "the last level; it can't be `never`")
      PolicyKey(
        "sustained_for", \.pressure.sustainedFor, as: .duration,
        about: "a condition must hold this long before the level rises",
        less: "the level rises sooner; short spikes count more",
        more: "pressure must last longer before anything is done")
      PolicyKey(
        "clear_after", \.pressure.clearAfter, as: .duration,
        about: "all conditions of a level must be over for this long before the level falls",
        less: "a level ends sooner after memory is back",
        more: "a level is held longer after memory is back")
      PolicyKey(
        "warn_once_per", \.pressure.warnOncePer, as: .choice,
        about: """
          how often one worker is warned: once until the level is normal again, or once at each \
          level
          """)
      PolicyKey(
        "stalls_count_below", \.pressure.stallsCountBelow, as: .percent,
        about: """
          while at least this share of the memory is available, stalls alone raise the level to \
          `warning` at most, and no worker is terminated for them; `100%`: they always count
          """,
        less: "stalls end workers only when less memory is available",
        more: "stalls end workers while more memory is available")
      PolicyKey(
        "terminate_after", \.pressure.terminateAfter, as: .duration,
        about: """
          a level that terminates must hold this long, by a later reading too, before a worker is \
          terminated. A level that you set doesn't have to
          """,
        less: "workers are terminated after a shorter shortage",
        more: "memory must be short for longer before workers are terminated")
      PolicyKey(
        "swap", \.pressure.swapPercent, as: .percent,
        about: """
          the share of the free swap that counts as available memory at `urgent` and `critical`, \
          the levels at which workers are terminated. `warning` measures RAM alone. Free zram \
          doesn't count: it is in RAM. With `budget: host` only
          """,
        less: "workers are ended while more swap is free",
        more: "more swap is used before workers are ended")
    }
  }

  /// A key of a pressure level. A level that is written lists all its conditions; it isn't merged
  /// with the base's.
  private static func level(
    _ name: String, _ path: WritableKeyPath<LifecyclePolicy, PressureCondition?>, about: String
  ) -> PolicyKey {
    PolicyKey(
      name, path, or: "never", over: PressureCondition(), keys: conditions, about: about,
      // `critical` can't be `never`.
      meanings: name == "critical" ? [:] : ["never": "this level is never reached"]
    ) { inner, _ in
      guard inner.order.isEmpty else { return }
      inner.sink.error(
        at: inner.start ?? inner.positions[inner.path],
        "`\(name)` lists no condition that would raise this level",
        suggestion: "write `\(name): { available_below: 10% }`, or `\(name): never`")
    }
  }

  @KeyList<PressureCondition> static var conditions: [Key<PressureCondition>] {
    Key<PressureCondition>(
      "available_below", \.availableBelow, as: .amount,
      about: "less available memory than this: a share of the budget, or a size")
    Key<PressureCondition>(
      "stall", about: "tasks wait for memory (PSI); it needs `some` or `full`", check: checkStall
    ) {
      Key<PressureCondition>(
        "some", \.stall.some, as: .percent.notZero,
        about: "some task waited for memory for this share of the window (PSI)")
      Key<PressureCondition>(
        "full", \.stall.full, as: .percent.notZero,
        about: "all tasks that had work waited, for this share of the window")
      Key<PressureCondition>(
        "window", \.stall.window, as: .window,
        about: """
          the time over which the stall is measured. A value that isn't a multiple of `2s` needs \
          a daemon with CAP_SYS_RESOURCE; otherwise there is a warning
          """,
        usual: "`2s`")
    }
  }

  private static func checkStall(_ inner: MappingReader, _ condition: inout PressureCondition) {
    let window = inner.positions[inner.path(of: "window")]
    if let time = condition.stall.window, time.wholeNanoseconds % 2_000_000_000 != 0 {
      inner.sink.warning(
        at: window, "a window that is not a multiple of `2s` needs a daemon with CAP_SYS_RESOURCE",
        suggestion: "write `2s`, `4s`, `6s`, `8s` or `10s`")
    }
    if inner.position(ofKey: "some") == nil, inner.position(ofKey: "full") == nil {
      let level = KeyPositions.ancestors(of: inner.path).first.flatMap { inner.positions[$0] }
      inner.sink.error(
        at: window ?? inner.start ?? level,
        "`stall` needs `some` or `full`, the share of the window that counts as a stall",
        suggestion: "write `stall: { some: 10%, window: 2s }`")
    }
  }

  static var ladder: PolicyKey {
    PolicyKey(
      "ladder",
      about: """
        the rungs of each pressure level: what is done until the level falls. The smallest loss \
        is first
        """,
      holder: .machine
    ) {
      rungs("warning", \.ladder.warning, about: "the rungs of the first level")
      rungs("urgent", \.ladder.urgent, about: "the rungs of the second level")
      rungs("critical", \.ladder.critical, about: "the rungs of the last level")
    }
  }

  private static func rungs(
    _ name: String, _ path: WritableKeyPath<LifecyclePolicy, [Ladder.Rung]>, about: String
  ) -> PolicyKey {
    PolicyKey(name, path, listOf: .rung, about: about, check: checkOrder)
  }

  /// Reports a rung with a smaller loss than a rung before it, because it would never be used.
  private static func checkOrder(
    _ items: [(value: Ladder.Rung, node: YAMLNode)], in reader: MappingReader
  ) {
    var dearest: Ladder.Rung?
    for (rung, node) in items {
      guard let loss = rung.loss else { continue }
      if let before = dearest, let worst = before.loss, loss < worst {
        reader.sink.error(
          at: node.position,
          "`\(rung.text)` comes after `\(before.text)`, which costs more: "
            + "the cheapest rung comes first",
          suggestion: "move `\(rung.text)` in front of `\(before.text)`")
      } else {
        dearest = rung
      }
    }
  }
}

extension PressureRules {
  /// The percentage of used swap. It is 0 in the journals of earlier versions, which don't have it.
  fileprivate var swapPercent: Double {
    get { swap ?? 0 }
    set { swap = newValue }
  }
}

extension PressureCondition {
  /// The keys of stalls. Both thresholds have one window in a file.
  fileprivate struct StallKeys {
    var some: Double?
    var full: Double?
    var window: Duration?
  }

  fileprivate var stall: StallKeys {
    get {
      StallKeys(
        some: someStall?.percent, full: fullStall?.percent,
        window: (someStall ?? fullStall)?.window)
    }
    set {
      let window = newValue.window ?? .seconds(2)
      someStall = newValue.some.map { Stall(percent: $0, window: window) }
      fullStall = newValue.full.map { Stall(percent: $0, window: window) }
    }
  }
}

extension Ladder.Rung {
  /// How much a rung loses, as a number for comparison. `nil`: the rung may be at any position.
  /// `ios-5` warns after it has terminated suspended workers, and `iphone-os-3` warns first.
  var loss: Int? {
    switch self {
    case .warn: nil
    case .trim, .hibernate, .purge: 0
    case .terminate(.suspended): 1
    case .terminate(.background): 2
    case .terminate(.foreground): 3
    }
  }
}

extension Converter where Value == Duration {
  /// The window that the kernel accepts (Documentation/accounting/psi.rst).
  fileprivate static var window: Converter {
    Converter.duration.checked(kind: "duration, `500ms` to `10s`") { window in
      (.milliseconds(500) ... .seconds(10)).contains(window)
        ? nil : Problem(message: "must be from `500ms` to `10s`, not `\(window.policyText)`")
    }
  }
}

extension Converter where Value == Ladder.Rung {
  fileprivate static var rung: Converter {
    let names = Ladder.Rung.allCases.map(\.text)
    return Converter(expects: listed(names), shape: .keywords(names), write: { .plain($0.text) }) {
      node in
      if let text = node.scalar?.string {
        if let rung = Ladder.Rung.allCases.first(where: { $0.text == text }) {
          return .success(rung)
        }
        return .problem(suggestion: didYouMean(text, among: names))
      }
      // People often write `terminate: suspended`, because it is usual in YAML.
      if case .mapping(let mapping) = node, let pair = mapping.first, mapping.count == 1,
        let verb = pair.key.scalar?.string, let object = pair.value.scalar?.string,
        names.contains("\(verb) \(object)")
      {
        return .failure(.write("\(verb) \(object)"))
      }
      return .failure(.wrongKind)
    }
  }
}
