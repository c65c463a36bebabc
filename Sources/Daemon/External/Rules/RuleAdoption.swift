import Lifecycle
import Linux
import Policy

/// A worker that a rule has adopted. Its memory may be on disk, so its command line can't be read.
struct RuledWorker: Sendable {
  var id: WorkerID
  var rule: String
  var process: ProcessIdentity
  var session: Int32
  var command: [String]
  var footprint: ByteCount
}

/// Adopts the processes that the rules of the configuration match (`adopt:`). Without a rule
/// nothing is scanned. It belongs to the event loop's thread.
final class RuleAdoption {
  private let externals: ExternalAdoption
  private let released: ReleasedProcesses
  private let processes: any Processes

  private(set) var rules: [AdoptionRule] = []
  private var entries: [Int32: RuleScan.Entry] = [:]
  /// The number of changes of the rules. Matches of earlier rules aren't adopted.
  private var generation = 0
  private let next: TimedOperation
  private var isScanning = false
  /// The matches that aren't adopted yet. They are examined one after the other.
  private var waiting: [RuledProcess] = []
  private var isAdopting = false
  /// By process, what was logged, so that it isn't logged again.
  private var logged: [ProcessIdentity: String] = [:]
  private var isSlow = false
  /// The processes that block a scan, each until that scan continues.
  private var unresponsive: [ProcessIdentity: ScanProgress] = [:]

  static let interval = Duration.seconds(5)
  /// The time after an examination or a release that has failed.
  private static let retry = Duration.seconds(30)

  init(
    externals: ExternalAdoption, released: ReleasedProcesses, processes: any Processes
  ) {
    next = TimedOperation(externals.ends.loop)
    self.externals = externals
    self.released = released
    self.processes = processes
    externals.rules = self
  }

  private var timers: any Timers { externals.ends.loop }
  private var workers: WorkerRegistry { externals.workers }
  private var workerProcesses: any WorkerProcesses { externals.ends.processes }
  private var phase: DaemonPhase { externals.declared.phase }
  private var log: DaemonLog { externals.ends.log }

  /// Applies the rules when the daemon starts, and when the configuration was read again.
  func follow(_ rules: [AdoptionRule]) {
    guard rules != self.rules || generation == 0 else { return }
    self.rules = rules
    generation += 1
    entries = [:]
    waiting = []
    logged = [:]
    if !rules.isEmpty, processes.forbidsStrangers {
      log(
        .warning,
        "adoption by rule: Yama (kernel.yama.ptrace_scope) keeps this daemon from watching the "
          + "inputs of processes that it hasn't started, so they can't be put to sleep; use "
          + "`dormouse wrap` or root's daemon")
    }
    released.keepOnly(rules) { [log] in log(.warning, $0) }
    examineWorkers()
    next.cancel()
    if !isScanning { scanNow() }
  }

  /// Records that the operator has released a process.
  func didRelease(_ process: ProcessIdentity, from rule: String) {
    guard let rule = rules.first(where: { $0.name == rule }) else { return }
    released.add(process, from: rule) { [log] in log(.warning, $0) }
  }

  /// A preview of what the rules would adopt among all running processes, and what they have
  /// adopted.
  func preview() -> AdoptionPreview {
    AdoptionPreview(
      ruleScan: makeScan(entries: [:]), adopted: ruledWorkers().sorted { $0.id < $1.id })
  }

  private func ruledWorkers() -> [RuledWorker] {
    workers.values.compactMap { worker in
      guard let rule = worker.external?.rule, let process = worker.process else { return nil }
      return RuledWorker(
        id: worker.id, rule: rule, process: process.identity, session: process.session,
        command: worker.configuration.command,
        footprint: externals.driver.state.footprint(of: worker.id))
    }
  }

  // MARK: scans

  private func makeScan(entries: [Int32: RuleScan.Entry]) -> RuleScan {
    let roots = workers.values.compactMap { $0.process?.identity }
    return RuleScan(
      matching: RuleMatching(rules: rules),
      owned: Dictionary(roots.map { ($0.pid, $0.startTime) }) { first, _ in first },
      released: released.processes, entries: entries, now: timers.now,
      passedOver: Set(unresponsive.keys))
  }

  private func scanNow() {
    guard !rules.isEmpty, !phase.isClosing else { return }
    isScanning = true
    let asked = generation
    unresponsive = unresponsive.filter { process, progress in progress.reading == process }
    let scan = makeScan(entries: entries)
    workerProcesses.scan(scan) { [unowned self] outcome in
      isScanning = false
      guard !phase.isClosing else { return }
      if outcome == nil, let process = scan.progress.reading {
        unresponsive[process] = scan.progress
        log(
          .warning,
          "adoption by rule: pid \(process.pid) can't be read: its memory or its file system "
            + "doesn't answer. It isn't adopted until it does")
        return scanNow()
      }
      // The rules have changed meanwhile.
      guard asked == generation else { return scanNow() }
      if let outcome { adoptMatches(outcome) }
      if outcome == nil, !isSlow {
        log(
          .warning,
          "adoption by rule: /proc can't be read in time. Nothing is adopted until it can")
      }
      isSlow = outcome == nil
      if next.isUnderWay || isScanning { return }
      next.wait(Self.interval) { [unowned self] in scanNow() }
    }
  }

  private func adoptMatches(_ outcome: RuleScan.Outcome) {
    entries = outcome.entries
    // Processes that still wait are matched again.
    waiting = []
    for each in outcome.matches {
      let ruled = RuledProcess(process: each.process, rule: rules[each.rule])
      switch each.matched {
      case .ready: waiting.append(ruled)
      case .refused(let reason): logRefusal(ruled, reason)
      case .tooYoung, .tooSmall, .contained, .released: break
      }
    }
    // Processes that have ended aren't logged again.
    if logged.count > 1000 { logged = logged.filter { entries[$0.key.pid] != nil } }
    adoptNext()
  }

  /// Logs why a process isn't adopted, once for a process and reason.
  private func logRefusal(_ ruled: RuledProcess, _ reason: String) {
    guard logged.updateValue(reason, forKey: ruled.process) != reason else { return }
    log(.notice, "rule \(ruled.rule.name): pid \(ruled.process.pid) isn't adopted: \(reason)")
  }

  // MARK: adoption

  private func adoptNext() {
    guard !isAdopting, !phase.isClosing else { return }
    while !waiting.isEmpty {
      let ruled = waiting.removeFirst()
      // The process was adopted while it waited.
      if workers.owner(of: ruled.process.pid) != nil { continue }
      if let reason = refusal(by: ruled.rule) {
        logRefusal(ruled, reason)
        continue
      }
      return adopt(ruled)
    }
  }

  private func refusal(by rule: AdoptionRule) -> String? {
    let count = workers.values.count { $0.external?.rule == rule.name }
    return count < rule.limit
      ? nil
      : "the rule has \(count) \(count == 1 ? "worker" : "workers"), as many as its `limit` allows"
  }

  private func adopt(_ ruled: RuledProcess) {
    isAdopting = true
    let asked = generation
    externals.adopt(ruled) { [unowned self] refusal in
      isAdopting = false
      if let refusal { logRefusal(ruled, refusal.text) }
      // The worker was adopted by a rule that has changed since.
      if refusal == nil, asked != generation { examineWorkers() }
      adoptNext()
    }
  }

  // MARK: changes of the rules

  /// Releases the workers that no rule matches any more. The others get their rule's policy.
  private func examineWorkers() {
    let ruled = ruledWorkers()
    if ruled.isEmpty { return }
    let asked = generation
    let matching = RuleMatching(rules: rules)
    workerProcesses.chooseRules(for: ruled, by: matching) { [unowned self] choices in
      guard asked == generation, !phase.isClosing else { return }
      guard let choices else {
        log(.warning, "the workers of rules can't be examined in time; they stay as they are")
        return examineLater()
      }
      for entry in ruled { apply(choices[entry.id], to: entry) }
    }
  }

  private func examineLater() {
    let asked = generation
    timers.after(Self.retry) { [unowned self] in
      if asked == generation, !phase.isClosing { examineWorkers() }
    }
  }

  private func apply(_ rule: AdoptionRule?, to ruled: RuledWorker) {
    guard let worker = workers[ruled.id], worker.process?.identity == ruled.process else {
      return
    }
    guard let rule else {
      log(.notice, "\(worker.id): no rule matches it any more")
      return externals.release(worker.id) { [unowned self] failure in
        guard let failure else { return }
        log(.warning, "\(worker.id) can't be released: \(failure)")
        examineLater()
      }
    }
    let old = (worker.external?.rule, worker.external?.mayBeTerminated, worker.configuration)
    worker.external?.rule = rule.name
    worker.external?.mayBeTerminated = rule.mayTerminate
    worker.configuration.importance = rule.importance
    worker.configuration.policy = rule.effectivePolicy
    let new = (worker.external?.rule, worker.external?.mayBeTerminated, worker.configuration)
    guard old != new else { return }
    externals.driver.send(.profileChanged(worker.id, worker.profile))
    externals.save(worker)
  }
}
