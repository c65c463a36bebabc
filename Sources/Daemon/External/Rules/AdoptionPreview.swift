import Control
import Lifecycle
import Linux
import Policy

/// Finds what the rules match among all running processes, for `adopt --dry-run`. It waits for
/// processes and file systems, so it mustn't run on the event loop's thread.
public struct AdoptionPreview: Sendable {
  /// A worker that a rule has adopted.
  struct Adopted: Sendable {
    var worker: String
    var rule: String
    var process: ProcessIdentity
    var session: Int32
    var command: [String]
    var footprint: ByteCount
  }

  var look: RuleLook
  var adopted: [Adopted]

  init(look: RuleLook, adopted: [Adopted]) {
    self.look = look
    self.adopted = adopted
  }

  /// A preview without a daemon: no process is a worker.
  public init(_ rules: [AdoptionRule]) {
    look = RuleLook(
      matching: RuleMatching(rules), owned: [:], released: [], known: [:], now: EventLoop.now)
    adopted = []
  }

  /// Scans the processes.
  ///
  /// - Returns: nil if /proc can't be listed.
  public func perform() -> AdoptionPreviewReport? {
    guard let outcome = look.perform() else { return nil }
    // Without the scan no footprint is known.
    let scan = try? ProcessScan.read()
    var counts: [String: Int] = [:]
    for worker in adopted { counts[worker.rule, default: 0] += 1 }
    var findings = adopted.map { finding($0, in: scan) }
    for found in outcome.found.sorted(by: { ($0.rule, $0.process.pid) < ($1.rule, $1.process.pid) })
    {
      let rule = look.matching.rules[found.rule]
      var isFull = false
      if found.matched == .ready {
        isFull = counts[rule.name, default: 0] >= rule.limit
        if !isFull { counts[rule.name, default: 0] += 1 }
      }
      findings.append(finding(found, rule, isFull: isFull, in: scan))
    }
    return AdoptionPreviewReport(rules: look.matching.rules.count, findings: findings)
  }

  private func finding(_ worker: Adopted, in scan: ProcessScan?) -> AdoptionFinding {
    let rule = look.matching.rules.first { $0.name == worker.rule }
    let tree = scan?.tree(root: worker.process, session: worker.session)
    return AdoptionFinding(
      rule: worker.rule, mode: (rule?.mode ?? .shadow).rawValue, worker: worker.worker,
      pid: worker.process.pid, footprint: worker.footprint.bytes,
      processes: tree?.processes.count ?? 1, command: worker.command,
      result: CodedText("adopted", "adopted"))
  }

  private func finding(
    _ found: RuleLook.Found, _ rule: AdoptionRule, isFull: Bool, in scan: ProcessScan?
  ) -> AdoptionFinding {
    let pids = scan?.tree(root: found.process).pids ?? []
    // Processes of other users can't be measured.
    let footprint = pids.isEmpty ? nil : try? Footprint.measure(pids).footprint
    return AdoptionFinding(
      rule: rule.name, mode: rule.mode.rawValue, worker: rule.workerName(of: found.process.pid),
      pid: found.process.pid, footprint: footprint, processes: max(1, pids.count),
      command: found.command,
      result: isFull
        ? CodedText("limit", "not adopted: the rule has \(rule.limit) workers (limit)")
        : Self.result(found.matched, rule))
  }

  private static func result(_ matched: RuleLook.Matched, _ rule: AdoptionRule) -> CodedText {
    switch matched {
    case .ready: CodedText("would_adopt", "would be adopted")
    case .tooYoung(let remaining):
      CodedText("too_young", "would be adopted in \(remaining.spoken) (older_than)")
    case .tooSmall(let footprint, let minimum):
      CodedText(
        "too_small", "too small: \(footprint.map { "\($0)" } ?? "?") of \(minimum) (min_footprint)")
    case .contained(let pid): CodedText("contained", "belongs to pid \(pid), which matches, too")
    case .released: CodedText("released", "not adopted: you have released it")
    case .refused(let reason): CodedText("refused", "not adopted: \(reason)")
    }
  }
}
