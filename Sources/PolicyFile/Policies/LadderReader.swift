import Policy
import YAML

/// `ladder:`, and what makes one level's list right. Across levels: `PolicyChecks`.
struct LadderReader {
  var reader: MappingReader

  func read(_ ladder: inout Ladder) {
    level("warning", &ladder.warning)
    level("urgent", &ladder.urgent)
    level("critical", &ladder.critical)
  }

  private func level(_ key: String, _ target: inout [Ladder.Rung]) {
    guard let items = reader.list(key, of: Converter<Ladder.Rung>.rung) else { return }
    let rungs = reader.unique(items.map { ($0.value, $0.value.text, $0.node) })
    checkOrder(items.map { ($0.value, $0.node) })
    target = rungs
  }

  /// A rung whose loss is smaller than that of one before it would never get its chance.
  private func checkOrder(_ items: [(rung: Ladder.Rung, node: YAMLNode)]) {
    var dearest: Ladder.Rung?
    for (rung, node) in items {
      guard let loss = rung.loss else { continue }
      if let before = dearest, let worst = before.loss, loss < worst {
        reader.sink.error(
          at: node.position,
          "`\(rung.text)` comes after `\(before.text)`, which costs more: the cheapest rung comes first",
          suggestion: "move `\(rung.text)` in front of `\(before.text)`")
      } else {
        dearest = rung
      }
    }
  }
}

extension Ladder.Rung {
  /// What a rung loses, for comparison; `nil` where any place is right: `ios-5` warns after it has
  /// terminated suspended workers, and `iphone-os-3` warns first.
  var loss: Int? {
    switch self {
    case .warn: nil
    case .hibernate, .purge: 0
    case .terminate(.suspended): 1
    case .terminate(.background): 2
    case .terminate(.foreground): 3
    }
  }
}

extension Converter where Value == Ladder.Rung {
  fileprivate static var rung: Converter {
    let words = Ladder.Rung.allCases.map(\.text)
    return Converter(expects: listed(words), shape: .words(words)) { node in
      if let text = node.scalar?.string {
        if let rung = Ladder.Rung.allCases.first(where: { $0.text == text }) {
          return .success(rung)
        }
        return .failure(Problem(message: nil, suggestion: didYouMean(text, among: words)))
      }
      // `terminate: suspended` is what a YAML hand writes by habit.
      if case .mapping(let mapping) = node, let pair = mapping.first, mapping.count == 1,
        let verb = pair.key.scalar?.string, let object = pair.value.scalar?.string,
        words.contains("\(verb) \(object)")
      {
        return .failure(.write("\(verb) \(object)"))
      }
      return .failure(.wrongKind)
    }
  }
}
