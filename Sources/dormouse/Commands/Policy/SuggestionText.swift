import Control
import Deciding
import Simulation

/// The text of `policy suggest`.
func renderSuggestions(
  _ result: PolicySuggestions, width: Int?, color: Bool
) -> String {
  var lines = head(result).flatMap { wrapped(escaped($0), to: width) }
  lines.append("")
  lines += table(result).folded(width: width, leading: 1, color: color)
  for (index, suggestion) in result.suggestions.enumerated() {
    lines.append("")
    lines += text(suggestion, number: index + 1, now: result.now, width: width, color: color)
  }
  lines += policyLines(result, width: width, color: color)
  lines.append("")
  let worth = sizeText(Int64(result.waitWorth))
  let rule =
    "a second of waiting counts as \(worth) for an hour (--wait-worth). The numbers are of a "
    + "simulation of this history; `dormouse replay --set` plays the journal itself."
  if result.suggestions.isEmpty {
    lines += wrapped("\(result.text): \(counted(result.tried, "change")) tried", to: width)
  }
  return (lines + wrapped(rule, to: width)).joined(separator: "\n") + "\n"
}

private func head(_ result: PolicySuggestions) -> [String] {
  let history = result.history
  let length = durationText(result.hours * 3600)
  var lines = [
    "policy \(result.policy)\(result.only.map { " for \($0.joined(separator: ", "))" } ?? ""), "
      + "history from \(history.from) to \(history.to) (\(length)): "
      + "\(counted(result.workers, "worker")), \(counted(result.uses, "use"))"
  ]
  if history.gaps > 0 {
    lines.append("\(counted(history.gaps, "gap")) without a daemon left out")
  }
  if result.evaluatedHours < result.hours {
    let evaluated = durationText(result.evaluatedHours * 3600)
    lines.append(
      "the numbers are of its last \(evaluated), to bound the time; --thorough takes all of it")
  }
  if result.hours < 24 {
    lines.append("a history of less than a day: the numbers may change with more of it")
  }
  let kept = sizeText(history.averageFootprint)
  lines.append(
    "recorded over all of it: \(kept) held on average, \(counted(history.wakes, "wake")), "
      + counted(history.trims, "trim"))
  if !history.unobserved.isEmpty {
    lines.append(
      "not in the journal: uses of \(history.unobserved.joined(separator: ", ")) while awake "
        + "(foreground.mode: manual)")
  }
  return lines
}

private func table(_ result: PolicySuggestions) -> Table {
  let titles = [
    "HELD", "SAVED/DAY", "TRIMS/DAY", "WAKES/DAY", "WAITING/DAY", "WAIT P50", "P95", "WRITTEN/DAY",
    "ENDED/DAY",
  ]
  var table = Table(columns: [""] + titles.map(Table.Column.number))
  func row(_ name: String, _ numbers: PolicyNumbers) -> [Table.Cell] {
    [
      .init(name, .bold), .init(sizeText(numbers.averageFootprint)),
      .init("\(sizeText(Int64(numbers.savedByteHours)))·h"),
      .init("\(Int(numbers.trims.rounded()))"), .init("\(Int(numbers.wakes.rounded()))"),
      .init(durationText(numbers.waitSeconds)),
      .init(durationText(numbers.waitP50)), .init(durationText(numbers.waitP95)),
      .init(sizeText(numbers.writtenBytes)), .init("\(Int(numbers.ended.rounded()))"),
    ]
  }
  table.rows = [row("now", result.now)]
  for (index, suggestion) in result.suggestions.enumerated() {
    table.rows.append(row("\(index + 1)", suggestion.numbers))
  }
  for policy in result.policies ?? [] { table.rows.append(row(policy.name, policy.numbers)) }
  return table
}

/// The lines about the shipped policy that is clearly better, if there is one.
private func policyLines(
  _ result: PolicySuggestions, width: Int?, color: Bool
) -> [String] {
  guard result.policies != nil else { return [] }
  guard let best = result.bestPolicy else {
    return [""] + wrapped("no shipped policy would have been clearly better", to: width)
  }
  let title = "the shipped policy \(escaped(best.name)) would have been better as a whole"
  let change = difference(
    byteHours: Double(best.numbers.averageFootprint - result.now.averageFootprint) * 24,
    wakes: best.numbers.wakes - result.now.wakes,
    wait: best.numbers.waitSeconds - result.now.waitSeconds)
  return [""] + wrapped(title, to: width).map { Color.bold.paint($0, if: color) }
    + wrapped("\(change) a day", to: width.map { $0 - 3 }).map { "   \($0)" }
    + ["   \(escaped(best.yaml))"]
}

private func text(
  _ suggestion: PolicySuggestions.Suggestion, number: Int, now: PolicyNumbers, width: Int?,
  color: Bool
) -> [String] {
  let titles = ["best": "best trade", "saves_most": "saves most", "waits_least": "waits least"]
  let changes = suggestion.changes.map { "\($0.key): \($0.from) → \($0.to)" }
  let title =
    "\(number). \(changes.joined(separator: ", ")) (\(titles[suggestion.code] ?? suggestion.code))"
  var lines = wrapped(title, to: width).map { Color.bold.paint($0, if: color) }
  func add(_ text: String) {
    lines += wrapped(escaped(text), to: width.map { $0 - 3 }).map { "   \($0)" }
  }
  for meaning in suggestion.changes.compactMap(\.text) { add(meaning) }
  let (new, old) = (suggestion.numbers, now)
  add(
    difference(
      byteHours: Double(new.averageFootprint - old.averageFootprint) * 24,
      wakes: new.wakes - old.wakes,
      wait: new.waitSeconds - old.waitSeconds) + " a day")
  for worker in suggestion.workers {
    add(
      "\(worker.worker): "
        + difference(
          byteHours: worker.byteHours, wakes: worker.wakes, wait: worker.waitSeconds))
  }
  // These lines are for copying, so they aren't broken.
  lines += suggestion.yaml.map { "   \($0)" }
  lines.append("   " + suggestion.set.map { "--set '\($0)'" }.joined(separator: " "))
  return lines
}

/// The text of a difference, such as `−3.1 GB·h, +12 wakes, +0.4 s of waiting`.
private func difference(byteHours: Double, wakes: Double, wait: Double) -> String {
  func sign(_ value: Double) -> String { value < 0 ? "−" : "+" }
  let count = Int(wakes.magnitude.rounded())
  return "\(sign(byteHours))\(sizeText(Int64(byteHours.magnitude)))·h held, "
    + "\(sign(wakes))\(counted(count, "wake")), "
    + "\(sign(wait))\(durationText(wait.magnitude)) of waiting"
}
