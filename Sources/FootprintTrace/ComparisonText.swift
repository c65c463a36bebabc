import Control
import Drawing

/// The output of `footprint compare`: both footprints on the same axes, and their numbers.
public func renderComparison(
  _ comparison: RecordingComparison, of a: Recording, with b: Recording, style: TerminalStyle
) -> [String] {
  let peak = max(comparison.a.statistics.peak, comparison.b.statistics.peak)
  let seconds = max(a.seconds, b.seconds)
  var lines: [String] = []
  for (letter, side, recording) in [("A", comparison.a, a), ("B", comparison.b, b)] {
    lines.append(
      style.title("\(letter): \(escaped(side.name)): \(side.statistics.sentence)"))
    lines += StepPlot(recording, style: style, minBytes: peak, seconds: seconds).lines + [""]
  }
  let rows = comparison.tableLines(color: style.color).map {
    style.ascii ? TerminalStyle.plain($0) : $0
  }
  return lines + rows
}

extension RecordingComparison {
  fileprivate func tableLines(color: Bool) -> [String] {
    var table = Table(columns: [
      "", .number("A"), .number("B"), .number("difference"), .number("%"),
    ])
    for metric in metrics { table.rows.append(metric.cells) }
    let (ours, theirs) = (a.statistics.warnings, b.statistics.warnings)
    for index in 0..<max(ours.count, theirs.count) {
      let one = index < ours.count ? ours[index] : nil
      let other = index < theirs.count ? theirs[index] : nil
      table.rows += WarningEffect.rows(index + 1, a: one, b: other)
    }
    return table.lines(width: nil, color: color)
  }
}

extension RecordingComparison.Metric {
  fileprivate var cells: [Table.Cell] {
    let sign = difference > 0 ? "+" : ""
    let share = percent.map { "\($0 > 0 ? "+" : "")\(percentText($0))" } ?? "–"
    guard difference != 0 else {
      return [.init(title), .init(words(a)), .init(words(b)), .init("same"), .init("")]
    }
    return [
      .init(title), .init(words(a)), .init(words(b)), .init(sign + words(difference)), .init(share),
    ]
  }

  private func words(_ value: Double) -> String {
    switch unit {
    case .bytes: sizeText(Int64(value))
    case .seconds: value < 0 ? "-\(durationText(-value))" : durationText(value)
    case .count: fixed(value, 0)
    }
  }
}

extension WarningEffect {
  /// The table rows of one warning in both recordings. One of them may have fewer warnings.
  fileprivate static func rows(
    _ number: Int, a: WarningEffect?, b: WarningEffect?
  ) -> [[Table.Cell]] {
    func size(_ value: Int64?) -> Table.Cell { .init(value.map(sizeText) ?? "-") }
    func difference(_ path: KeyPath<WarningEffect, Int64>) -> Table.Cell {
      guard let a, let b else { return .init("") }
      let value = b[keyPath: path] - a[keyPath: path]
      return .init(value == 0 ? "same" : "\(value > 0 ? "+" : "")\(sizeText(value))")
    }
    func row(_ title: String, _ path: KeyPath<WarningEffect, Int64>) -> [Table.Cell] {
      [
        .init(title), size(a?[keyPath: path]), size(b?[keyPath: path]), difference(path), .init(""),
      ]
    }
    func time(_ effect: WarningEffect?) -> Table.Cell { .init(effect?.fallTimeText ?? "-") }
    return [
      row("warning \(number): before", \.before), row("  after", \.after),
      row("  freed", \.givenBack),
      [.init("  at rest after"), time(a), time(b), .init(""), .init("")],
    ]
  }
}
