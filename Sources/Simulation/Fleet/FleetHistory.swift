import Drawing

/// The journal from which a trace was made.
public struct FleetHistory: Codable, Sendable, Hashable {
  /// When the history begins, by the wall clock: ISO 8601.
  public var from: String
  /// When the history ends, by the wall clock: ISO 8601.
  public var to: String
  /// The number of gaps in which no daemon ran or the journal is missing. Their time is left out.
  public var gaps: Int
  /// The costs that were measured in the journal. The others are defaults.
  public var measured: [String]
  /// The workers whose uses while they were awake aren't in the journal.
  public var unobserved: [String]
  /// The footprint of all workers together, on average over time, in bytes.
  public var averageFootprint: Int64
  /// The memory that hibernation and trims saved, on average over time, in bytes.
  public var averageSaved: Int64
  /// The number of wakes from suspension and hibernation.
  public var wakes: Int
  /// The number of trims.
  public var trims: Int

  public init(
    from: String, to: String, gaps: Int, measured: [String], unobserved: [String],
    averageFootprint: Int64, averageSaved: Int64, wakes: Int, trims: Int
  ) {
    (self.from, self.to, self.gaps) = (from, to, gaps)
    (self.measured, self.unobserved) = (measured, unobserved)
    (self.averageFootprint, self.averageSaved) = (averageFootprint, averageSaved)
    (self.wakes, self.trims) = (wakes, trims)
  }

  /// The lines that are printed above a table.
  func lines(hours: Double) -> [String] {
    var lines = ["history from \(from) to \(to)"]
    if gaps > 0 {
      lines[0] += "; without \(gaps) gap\(gaps == 1 ? "" : "s") in which no daemon ran"
    }
    let held = Double(averageFootprint) / 1_048_576
    lines.append(
      "recorded: \(fixed(held, 1)) MB held on average, "
        + "\(gigabyteHours(held * hours / 1024)) GB·h, "
        + "\(wakes) wake\(wakes == 1 ? "" : "s"), \(trims) trim\(trims == 1 ? "" : "s")")
    lines.append(
      measured.isEmpty
        ? "costs: the journal measured none, so all are defaults"
        : "costs from the journal: \(measured.joined(separator: "; "))")
    if !unobserved.isEmpty {
      lines.append(
        "uses of \(unobserved.joined(separator: ", ")) while awake are not in the journal "
          + "(foreground.mode: manual): only requests and wakes are")
    }
    return lines
  }
}
