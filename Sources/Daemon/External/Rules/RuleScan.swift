import Linux
import Policy

/// One scan of the machine's processes for those that rules match. A process that is known to match
/// none isn't read again until its entry is due. It belongs to one thread, which isn't the event
/// loop's.
struct RuleScan: Sendable {
  /// How a process relates to the rules.
  enum Standing: Hashable, Sendable {
    case unmatched
    /// The process belongs to a worker.
    case owned
    case matched(Int, Matched)
  }

  enum Matched: Hashable, Sendable {
    /// It can be adopted.
    case ready
    case tooYoung(Duration)
    case tooSmall(ByteCount?, minimum: ByteCount)
    /// It belongs to this process, which a rule matches.
    case contained(Int32)
    /// The operator has released it.
    case released
    /// It isn't adopted, for this reason: a sentence.
    case refused(String)
  }

  struct Entry: Sendable {
    var inode: UInt64
    var startTime: UInt64
    var due: Instant
    var standing: Standing
  }

  /// A process that a rule matches.
  struct Match: Sendable {
    var process: ProcessIdentity
    var rule: Int
    var matched: Matched
    var command: [String]
  }

  struct Outcome: Sendable {
    var entries: [Int32: Entry] = [:]
    var matches: [Match] = []
    /// The number of processes that were listed, and the number of those that were read.
    var listed = 0
    var read = 0
  }

  var matching: RuleMatching
  /// The first processes of workers: their pids and start times.
  var owned: [Int32: UInt64]
  var released: Set<ProcessIdentity>
  var entries: [Int32: Entry]
  var now: Instant
  /// The processes that block earlier scans.
  var passedOver: Set<ProcessIdentity> = []
  let progress = ScanProgress()

  /// The age up to which a process is read in each scan. A program forks first and then executes
  /// another program.
  static let youngAge = Duration.seconds(15)
  /// How long an entry of an older process is valid, plus up to half as long. A change of its
  /// program or cgroup is noticed then.
  static let entryLifetime = Duration.seconds(40)

  /// Scans the processes.
  ///
  /// - Returns: nil if /proc can't be listed.
  func perform() -> Outcome? {
    guard let listed = try? ListedProcess.all() else { return nil }
    var pass = RulePass(scan: self, matching: matching.resolved())
    for process in listed { pass.visit(process) }
    pass.result.listed = listed.count
    pass.result.read = pass.stats.count
    return pass.result
  }
}

/// The state of one scan.
private struct RulePass {
  let scan: RuleScan
  let matching: RuleMatching
  var stats: [Int32: ProcessStat?] = [:]
  var standings: [Int32: RuleScan.Standing] = [:]
  var result = RuleScan.Outcome()

  mutating func visit(_ process: ListedProcess) {
    let pid = process.pid
    if let entries = scan.entries[pid], entries.inode == process.inode, scan.now < entries.due {
      result.entries[pid] = entries
      return
    }
    guard let stat = stat(of: pid), !stat.isEnded, !scan.passedOver.contains(stat.identity) else {
      return
    }
    let observation = ProcessObservation(stat, now: scan.now)
    let standing = standing(of: observation)
    result.entries[pid] = RuleScan.Entry(
      inode: process.inode, startTime: stat.startTime,
      due: scan.now + recheckDelay(standing, of: observation), standing: standing)
    if case .matched(let rule, let matched) = standing {
      result.matches.append(
        RuleScan.Match(
          process: stat.identity, rule: rule, matched: matched,
          command: observation.arguments ?? [stat.name]))
    }
  }

  /// The time until the process is read again. It varies, so that not all entries of the first scan
  /// are due at the same time.
  private func recheckDelay(
    _ standing: RuleScan.Standing, of process: ProcessObservation
  ) -> Duration {
    switch standing {
    case .unmatched, .owned:
      process.age < RuleScan.youngAge
        ? .zero : RuleScan.entryLifetime + .seconds(Int(process.stat.pid) % 20)
    case .matched(_, .ready): .zero
    case .matched(_, .tooYoung(let remaining)): min(remaining, .seconds(60))
    case .matched: .seconds(15)
    }
  }

  private mutating func stat(of pid: Int32) -> ProcessStat? {
    if let entries = stats[pid] { return entries }
    // A process that can't be read has ended.
    let stat = try? ProcessStat.read(pid)
    stats[pid] = .some(stat)
    return stat
  }

  // MARK: one process

  private mutating func standing(of process: ProcessObservation) -> RuleScan.Standing {
    let pid = process.stat.pid
    if let entries = standings[pid] { return entries }
    // A process that is passed over counts as unmatched as an ancestor too, because it isn't known
    // whether a rule matches it.
    let standing =
      scan.passedOver.contains(process.stat.identity)
      ? .unmatched : scan.progress.reading(process.stat.identity) { decide(process) }
    standings[pid] = standing
    return standing
  }

  private mutating func decide(_ process: ProcessObservation) -> RuleScan.Standing {
    let stat = process.stat
    if stat.pid == 1 || isOfKernel(stat) { return .unmatched }
    let ancestors = ancestors(of: stat)
    if isOwned(stat, ancestors) { return .owned }
    let standing = matching.choose(process)
    guard case .matched(let rule, let matched) = standing else { return standing }
    if scan.released.contains(stat.identity) { return .matched(rule, .released) }
    if let container = container(among: ancestors) {
      return .matched(rule, .contained(container))
    }
    guard matched == .ready else { return standing }
    return .matched(rule, refusal(of: stat, ancestors, by: rule).map { .refused($0) } ?? .ready)
  }

  /// Whether a process is a kernel thread: those are children of the kernel's second process. In a
  /// container another process may have its pid.
  private mutating func isOfKernel(_ stat: ProcessStat) -> Bool {
    (stat.pid == 2 || stat.parent == 2) && self.stat(of: 2)?.name == "kthreadd"
  }

  /// The ancestors of a process, the nearest first.
  private mutating func ancestors(of stat: ProcessStat) -> [ProcessStat] {
    var matches: [ProcessStat] = []
    var pid = stat.parent
    while pid > 1, matches.count < 64, let parent = self.stat(of: pid) {
      matches.append(parent)
      pid = parent.parent
    }
    return matches
  }

  private mutating func isOwned(_ stat: ProcessStat, _ ancestors: [ProcessStat]) -> Bool {
    if scan.owned.isEmpty { return false }
    for process in [stat] + ancestors {
      if scan.owned[process.pid] == process.startTime || isLed(process) { return true }
    }
    return false
  }

  /// Whether a process belongs to a worker's session. A worker that Dormouse has started leads a
  /// session, and its descendants stay in it.
  private mutating func isLed(_ process: ProcessStat) -> Bool {
    guard let start = scan.owned[process.session], start <= process.startTime else { return false }
    // Another session may have the number by now.
    return self.stat(of: process.session).map { $0.startTime == start } ?? true
  }

  /// The nearest ancestor that a rule matches, whether it is adopted or not.
  private mutating func container(among ancestors: [ProcessStat]) -> Int32? {
    for ancestor in ancestors {
      let standing: RuleScan.Standing
      if let entries = result.entries[ancestor.pid] ?? scan.entries[ancestor.pid],
        entries.startTime == ancestor.startTime
      {
        standing = entries.standing
      } else {
        standing = self.standing(of: ProcessObservation(ancestor, now: scan.now))
      }
      if case .matched = standing { return ancestor.pid }
    }
    return nil
  }

  // MARK: refusals

  private mutating func refusal(
    of stat: ProcessStat, _ ancestors: [ProcessStat], by rule: Int
  ) -> String? {
    let managers = ([stat] + ancestors).filter {
      ["dormouse", WrapperTree.processName].contains($0.name) && $0.pid != CurrentProcess.pid
    }
    if let wrapper = managers.first {
      return "it was started by another Dormouse (pid \(wrapper.pid))"
    }
    // If a daemon was killed or replaced, the workers that it had started have another parent.
    if let group = ProcessDetails.cgroup(of: stat.pid), OuterWrapper.isWorkerGroup(group) {
      return "it is in the cgroup of a worker that Dormouse has started (\(group))"
    }
    if let refusal = ExternalProcess.refusal(of: stat) { return refusal }
    if matching.rules[rule].includesTerminals { return nil }
    return stat.terminalRefusal(
      parent: ancestors.first, readsTerminal: ProcessDetails.readsTerminal(stat.pid)
    ).map { "\($0) (`terminal: true` in the rule adopts it)" }
  }
}
