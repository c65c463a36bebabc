/// The machine's available memory and the workers' footprints at the last samples. `top` keeps it;
/// the daemon doesn't.
package struct MemoryHistory: Sendable {
  /// In bytes, the newest last.
  package private(set) var available: [Int64] = []
  package private(set) var footprints: [Int64] = []
  package private(set) var budget: Int64 = 0
  /// The number of samples that are kept. No terminal shows more.
  private static let maxSamples = 240

  package mutating func add(_ workers: [WorkerReport], _ daemon: DaemonReport?) {
    footprints.append(workers.reduce(0) { $0 + $1.footprint })
    if let daemon {
      available.append(daemon.available)
      budget = daemon.budget
    }
    footprints.removeFirst(max(footprints.count - Self.maxSamples, 0))
    available.removeFirst(max(available.count - Self.maxSamples, 0))
  }

  /// A line such as `available ▆▆▅▅ of 2.0 GB  footprints ▂▃▅█ of 64.2 MB`. Each curve begins at 0.
  /// That of the footprints ends at the highest value that is shown.
  package func line(width: Int, unicode: Bool) -> String {
    let textColumns =
      "available  of   footprints  of ".count + sizeText(budget).count + Self.longestSize
    let room = (width - textColumns) / 2
    guard room >= Self.minColumns, !available.isEmpty else {
      let single = width - "footprints  of ".count - Self.longestSize
      return single < Self.minColumns
        ? "" : footprintsText(room: min(single, Self.maxColumns), unicode: unicode)
    }
    let columns = min(room, Self.maxColumns)
    let curve = sparkline(available.suffix(columns), to: budget, unicode: unicode)
    return "available \(padded(curve, to: columns)) of \(sizeText(budget))  "
      + footprintsText(room: columns, unicode: unicode)
  }

  private func footprintsText(room: Int, unicode: Bool) -> String {
    let values = footprints.suffix(room)
    let highest = values.max() ?? 0
    return "footprints \(padded(sparkline(values, to: highest, unicode: unicode), to: room)) of "
      + sizeText(highest)
  }

  /// The width of `1023.9 MB`.
  private static let longestSize = 9
  /// The minimum number of columns of a curve.
  private static let minColumns = 6
  /// The maximum number of columns of a curve.
  private static let maxColumns = 60
}

/// One character for each value, from 0 to `highest` in eight steps.
package func sparkline(
  _ values: some Collection<Int64>, to highest: Int64, unicode: Bool
) -> String {
  let steps: [Character] = unicode ? Array("▁▂▃▄▅▆▇█") : Array("_.:-=+*#")
  return String(
    values.map { value in
      guard highest > 0, value > 0 else { return steps[0] }
      let step = Int(Double(value) / Double(highest) * Double(steps.count))
      return steps[min(step, steps.count - 1)]
    })
}
