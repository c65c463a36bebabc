import Control
import Linux
import Policy

/// Finds what the rules match among all running processes, for `adopt --dry-run`. It waits for
/// processes and file systems, so it mustn't run on the event loop's thread.
public struct AdoptionPreview: Sendable {
  var ruleScan: RuleScan
  var adopted: [RuledWorker]
}

extension AdoptionPreview {
  /// A preview without a daemon: no process is a worker.
  public init(_ rules: [AdoptionRule]) {
    self.init(
      ruleScan: RuleScan(
        matching: RuleMatching(rules: rules), owned: [:], released: [], entries: [:],
        now: EventLoop.now),
      adopted: [])
  }

  /// Scans the processes.
  ///
  /// - Returns: nil if /proc can't be listed.
  public func perform() -> AdoptionPreviewReport? {
    guard let outcome = ruleScan.perform() else { return nil }
    // Without the scan no footprint is known.
    let scan = try? ProcessScan.read()
    var counts: [String: Int] = [:]
    for worker in adopted { counts[worker.rule, default: 0] += 1 }
    var findings = adopted.map { finding($0, in: scan) }
    let matches = outcome.matches.sorted {
      ($0.rule, $0.process.pid) < ($1.rule, $1.process.pid)
    }
    for match in matches {
      let rule = ruleScan.matching.rules[match.rule]
      var isFull = false
      if match.matched == .ready {
        isFull = counts[rule.name, default: 0] >= rule.limit
        if !isFull { counts[rule.name, default: 0] += 1 }
      }
      findings.append(finding(match, rule, isFull: isFull, in: scan))
    }
    return AdoptionPreviewReport(rules: ruleScan.matching.rules.count, findings: findings)
  }

  private func finding(_ worker: RuledWorker, in scan: ProcessScan?) -> AdoptionFinding {
    let rule = ruleScan.matching.rules.first { $0.name == worker.rule }
    let tree = scan?.tree(root: worker.process, session: worker.session)
    return AdoptionFinding(
      rule: worker.rule, mode: (rule?.mode ?? .shadow).rawValue, worker: worker.id.name,
      pid: worker.process.pid, footprint: worker.footprint.bytes,
      processes: tree?.processes.count ?? 1, command: worker.command,
      result: CodedText("adopted", "adopted"))
  }

  private func finding(
    _ match: RuleScan.Match, _ rule: AdoptionRule, isFull: Bool, in scan: ProcessScan?
  ) -> AdoptionFinding {
    let pids = scan?.tree(root: match.process).pids ?? []
    // Processes of other users can't be measured.
    let footprint = pids.isEmpty ? nil : try? Footprint.measure(pids).footprint
    return AdoptionFinding(
      rule: rule.name, mode: rule.mode.rawValue, worker: rule.workerName(of: match.process.pid),
      pid: match.process.pid, footprint: footprint, processes: max(1, pids.count),
      command: match.command,
      result: isFull
        ? CodedText("limit", "not adopted: the rule has \(rule.limit) workers (limit)")
        : Self.result(match.matched))
  }

  private static func result(_ matched: RuleScan.Matched) -> CodedText {
    switch matched {
    case .ready: CodedText("would_adopt", "would be adopted")
    case .tooYoung(let remaining):
      CodedText("too_young", "would be adopted in \(remaining.text) (older_than)")
    case .tooSmall(let footprint, let minimum):
      CodedText(
        "too_small", "too small: \(footprint.map { "\($0)" } ?? "?") of \(minimum) (min_footprint)")
    case .contained(let pid): CodedText("contained", "belongs to pid \(pid), which matches, too")
    case .released: CodedText("released", "not adopted: you have released it")
    case .refused(let reason): CodedText("refused", "not adopted: \(reason)")
    }
  }
}
