/// A text such as `511 MB of 575 MB (89 %)`: the memory that sleep saves now, of that which the
/// workers would need without it; nil if they need none.
public func savedNowText(_ workers: [WorkerReport]) -> String? {
  let saved = workers.reduce(0) { $0 &+ max($1.saved ?? 0, 0) }
  let all = workers.reduce(saved) { $0 &+ max($1.footprint, 0) }
  guard all > 0 else { return nil }
  let percent = Int((Double(saved) / Double(all) * 100).rounded())
  return "\(sizeText(saved)) of \(sizeText(all)) (\(percent) %)"
}

/// A text such as `asleep 87 % of the time, 53 resumes (p50 18 ms, p95 44 ms)`, or nil if the
/// worker hasn't slept. `report` shows what was saved over time.
func savingsText(_ savings: SavingsReport) -> String? {
  var parts: [String] = []
  if savings.aliveSeconds > 0, savings.asleepSeconds > 0 {
    let share = savings.asleepSeconds / savings.aliveSeconds * 100
    parts.append("asleep \(percentText(min(share, 100))) of the time")
  }
  if savings.resumes > 0 { parts.append(resumesText(savings)) }
  return parts.isEmpty ? nil : parts.joined(separator: ", ")
}

/// The lines `today …` and `7 days …`.
func savingsLines(_ savings: RecentSavingsReport?) -> [String] {
  guard let savings else { return [] }
  return [("today", savings.today), ("7 days", savings.week)].compactMap { span, report in
    savingsText(report).map { "\(span): \($0)" }
  }
}

private func resumesText(_ savings: SavingsReport) -> String {
  let quantiles = [("p50", savings.resumeP50), ("p95", savings.resumeP95)].compactMap {
    name, time in
    time.map { "\(name) \(durationText($0))" }
  }
  return counted(savings.resumes, "resume")
    + (quantiles.isEmpty ? "" : " (\(quantiles.joined(separator: ", ")))")
}
