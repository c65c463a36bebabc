/// The output of `dormouse explain NAME`, in plain sentences.
public func renderExplanation(
  _ report: ExplanationReport, width: Int? = nil, color: Bool = false
) -> String {
  let state = escaped(report.state)
  let shown = Color.ofState(report.state).paint(state, if: color)
  let time = durationText(report.secondsInState)
  let name = escaped(report.worker)
  let reason = withKey(report.because.text, report.key)
  let isNew = report.state == "terminated" && report.because.code == "never_started"
  var lines = wrapped("\(name): \(isNew ? reason : "\(state) for \(time): \(reason)")", to: width)
  if color, let first = lines.first {
    // Colours have no width, but `wrapped` would count them.
    lines[0] = first.replacing("\(name): \(state)", with: "\(name): \(shown)", maxReplacements: 1)
  }
  if let stopped = report.stoppedWork {
    lines = wrapped("\(name): \(escaped(stopped.text))", to: width) + lines
  }
  if let next = report.next {
    lines.append(
      report.obstacles.isEmpty
        ? "Next state: \(escaped(next)); nothing prevents it" : "Not \(escaped(next)) yet:")
  }
  lines += report.obstacles.flatMap { item(obstacleText($0), width) }
  if let activity = report.activity {
    lines += activityLines(activity, hasRemedy: report.remedy != nil, width)
  }
  let sentences = [
    ("Early wakes", report.earlyWake?.text), ("Trims", report.trim?.text),
    ("Last memory request", report.lastShed?.text),
    ("Memory warnings", report.fruitlessWarnings?.text), ("Leak suspected", report.leak?.text),
    ("Not terminated for lack of memory", report.protection?.text),
  ]
  for case (let title, let text?) in sentences {
    lines += wrapped("\(title): \(escaped(text))", to: width)
  }
  if let rule = report.rule {
    lines += wrapped("Adopted by the rule \(escaped(rule)) (`adopt:` in dormouse.yaml)", to: width)
  }
  if let unwatched = report.unwatched {
    let list = unwatched.map(escaped).joined(separator: ", ")
    lines += wrapped("While it sleeps, these don't wake it: \(list)", to: width)
  }
  if !report.moves.isEmpty {
    lines.append("What changes its state:")
    lines += report.moves.flatMap { item(moveText($0), width) }
  }
  if let remedy = report.remedy { lines += remedyLines(remedy, width) }
  return lines.joined(separator: "\n") + "\n"
}

/// A text such as `12 s ago: connection from 127.0.0.1:5123 to port 8080`. `status` has the same
/// text.
func lastUseText(_ activity: ActivityReport) -> String {
  guard let last = activity.last, let ago = activity.lastSecondsAgo else {
    return activity.launchedSecondsAgo.map { "none since its launch \(durationText($0)) ago" }
      ?? "none in \(durationText(activity.overSeconds))"
  }
  return "\(durationText(ago)) ago: \(escaped(last.text))"
}

/// The lines that let the worker sleep. A line to paste is never wrapped.
private func remedyLines(_ remedy: RemedyReport, _ width: Int?) -> [String] {
  let once = remedy.command.map { "`\(escaped($0))`" }
  guard let line = remedy.line else {
    return wrapped("To let it sleep: \(once ?? ""): \(escaped(remedy.text))", to: width)
  }
  let location = remedy.place.map { " \(escaped($0))" } ?? ""
  let lines = line.split(separator: "\n").map { "    \(escaped(String($0)))" }
  return wrapped("To let it sleep,\(location):", to: width) + lines
    + wrapped(
      "Then \(escaped(remedy.text)).\(once.map { " Once, without it: \($0)." } ?? "")", to: width)
}

private func activityLines(
  _ activity: ActivityReport, hasRemedy: Bool, _ width: Int?
) -> [String] {
  let span = durationText(activity.overSeconds)
  guard activity.uses > 0 else {
    return wrapped("Last use: \(lastUseText(activity))", to: width)
  }
  var often = ["\(counted(activity.uses, "use")) in \(span)"]
  if let perHour = activity.perHour { often.append("\(decimal(perHour)) an hour") }
  if let quiet = activity.medianQuietSeconds {
    often.append("median time between uses \(durationText(quiet))")
  }
  let text = "Last use: \(lastUseText(activity)); \(often.joined(separator: ", "))"
  return wrapped(text, to: width)
    + (activity.advice.map { item(withKey($0.text, hasRemedy ? nil : $0.key), width) } ?? [])
}

/// The output of `dormouse explain --next`: both orders, with a line and the reasons for each
/// worker.
public func renderRanking(
  _ report: RankingReport, width: Int? = nil, color: Bool = false
) -> String {
  let level = Color.ofPressure(report.pressure).paint(escaped(report.pressure), if: color)
  return
    (["memory pressure: \(level)"]
    + order(
      "terminated", of: report.termination, by: report.terminationOrder, key: "terminate.order",
      width: width)
    + order(
      "hibernated", of: report.hibernation, by: report.hibernationOrder, key: "hibernate.order",
      width: width))
    .joined(separator: "\n") + "\n"
}

/// The output of `dormouse explain --savings`: a line and its reasons for each worker that keeps
/// memory.
public func renderKeptMemory(
  _ report: KeptMemoryReport, width: Int? = nil, color: Bool = false
) -> String {
  if report.workers.isEmpty { return "No worker keeps memory: all are hibernated or terminated.\n" }
  let verb = report.workers.count == 1 ? "keeps" : "keep"
  let title =
    "\(counted(report.workers.count, "worker")) \(verb) \(sizeText(report.footprint)), "
    + "the largest first:"
  let lines = report.workers.enumerated().flatMap { index, worker in
    numbered(
      index + 1,
      "\(escaped(worker.worker)) (\(escaped(worker.state))): \(sizeText(worker.footprint))"
        + nextText(worker), width: width)
      + worker.obstacles.flatMap { item(obstacleText($0), width, by: 6) }
      + (worker.remedy.map { shortRemedyLines($0, width) } ?? [])
  }
  return (wrapped(title, to: width) + lines).joined(separator: "\n") + "\n"
}

private func shortRemedyLines(_ remedy: RemedyReport, _ width: Int?) -> [String] {
  guard let line = remedy.line else {
    return item("to let it sleep: `\(escaped(remedy.command ?? ""))`", width, by: 6)
  }
  let location = remedy.place.map { " \(escaped($0))" } ?? ""
  return item("to let it sleep,\(location):", width, by: 6) + ["          \(escaped(line))"]
}

private func nextText(_ worker: KeptMemoryReport.Worker) -> String {
  let mode = worker.isShadow ? "; in shadow mode" : ""
  guard let next = worker.next else { return mode }
  return worker.obstacles.isEmpty
    ? "; next state: \(escaped(next)); nothing prevents it\(mode)"
    : "\(mode); not \(escaped(next)) yet:"
}

private func order(
  _ what: String, of entries: [RankingReport.Entry], by criteria: [String], key: String,
  width: Int?
) -> [String] {
  if entries.isEmpty { return ["No worker can be \(what)."] }
  let by = criteria.map(escaped).joined(separator: ", ")
  return ["Order in which workers are \(what), by \(by) (\(key)):"]
    + entries.enumerated().flatMap { index, entry in
      let next = entries.dropFirst(index + 1).first?.worker
      return numbered(
        index + 1,
        entryText(entry, before: next, showsRegret: criteria.contains("regret")),
        width: width)
        + entry.obstacles.flatMap { item("not now: \(obstacleText($0))", width, by: 6) }
    }
}

/// A line such as `bot24 (background): band 30, 12 MB, last used 40 s ago; at critical pressure,
/// before rails: same band, unused longer`.
private func entryText(
  _ entry: RankingReport.Entry, before next: String?, showsRegret: Bool
) -> String {
  var parts = [bandText(entry), sizeText(entry.footprint)]
  parts.append("last used \(durationText(entry.secondsSinceUse)) ago")
  if let launch = entry.launchSeconds { parts.append("relaunch \(durationText(launch))") }
  if showsRegret { parts.append(regretText(entry.regret)) }
  // There is no level above `critical`.
  let level = entry.fromPressure.map {
    $0 == "critical" ? "at critical pressure" : "from \(escaped($0)) pressure"
  }
  let decided = entry.before.map { because in
    "before \(next.map(escaped) ?? "the next"): \(escaped(because.text))"
  }
  let reason = [level, decided].compactMap { $0 }.joined(separator: ", ")
  return "\(escaped(entry.worker)) (\(escaped(entry.state))): \(parts.joined(separator: ", "))"
    + (reason.isEmpty ? "" : "; \(reason)")
}

/// A text such as `band 38 (30 + importance 5 + bonus 3)`.
private func bandText(_ entry: RankingReport.Entry) -> String {
  var terms = ["\(entry.bandOfState)"]
  if entry.bandOfImportance > 0 { terms.append("importance \(entry.bandOfImportance)") }
  if entry.bandBonus > 0 { terms.append("bonus \(entry.bandBonus)") }
  let sum = terms.count > 1 ? " (\(terms.joined(separator: " + ")))" : ""
  return "band \(entry.band)\(sum)\(entry.isDemoted ? ", demoted" : "")"
}

private func regretText(_ regret: RankingReport.Regret) -> String {
  let guess = regret.isCostKnown ? "" : ", estimated"
  let chance = Int((regret.chance * 100).rounded())
  return "regret \(decimal(regret.millisecondsPerMegabyte)) ms/MB (\(chance) % chance of use × "
    + "\(durationText(regret.costSeconds))\(guess))"
}

private func obstacleText(_ obstacle: ExplanationReport.Obstacle) -> String {
  withKey(obstacle.text, obstacle.key)
}

private func moveText(_ move: ExplanationReport.Move) -> String {
  let time = move.afterSeconds.map { " in \(durationText($0)):" } ?? ":"
  return "\(escaped(move.to))\(time) \(withKey(move.text, move.key))"
}

/// Adds the key in brackets, unless the sentence contains it already. A key without a dot, such as
/// `mode`, may be any word of a sentence, so it is always added.
private func withKey(_ text: String, _ key: String?) -> String {
  guard let key, !key.contains(".") || !text.contains(key) else { return escaped(text) }
  return "\(escaped(text)) [\(escaped(key))]"
}

private func item(_ text: String, _ width: Int?, by indent: Int = 2) -> [String] {
  hanging(padded("", to: indent) + "- ", text, to: width)
}

private func numbered(_ number: Int, _ text: String, width: Int?) -> [String] {
  hanging("  \(number). ", text, to: width)
}
