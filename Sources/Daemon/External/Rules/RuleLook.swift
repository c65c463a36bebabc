import Lifecycle
import Linux
import Policy

/// One look at the machine's processes for those that rules take. A process that is known to match none isn't read
/// again until its entry is due. Belongs to one thread, which isn't the loop's.
struct RuleLook: Sendable {
  /// What a process is to the rules.
  enum Standing: Hashable, Sendable {
    case unmatched
    /// A worker's.
    case owned
    case matched(Int, Matched)
  }

  enum Matched: Hashable, Sendable {
    /// It can be adopted.
    case ready
    case tooYoung(Duration)
    case tooSmall(ByteCount?, least: ByteCount)
    /// It belongs to this one, which a rule matches.
    case contained(Int32)
    /// The operator has released it.
    case released
    /// Why it isn't adopted: a sentence.
    case refused(String)
  }

  struct Known: Sendable {
    var inode: UInt64
    var startTime: UInt64
    var due: Instant
    var standing: Standing
  }

  /// A process that a rule matches.
  struct Found: Sendable {
    var process: ProcessIdentity
    var rule: Int
    var matched: Matched
    var command: [String]
  }

  struct Outcome: Sendable {
    var known: [Int32: Known] = [:]
    var found: [Found] = []
    /// How many processes were listed, and how many of them were read.
    var listed = 0
    var read = 0
  }

  var matching: RuleMatching
  /// The first processes of workers: pids, with their start times.
  var owned: [Int32: UInt64]
  var released: Set<ProcessIdentity>
  var known: [Int32: Known]
  var now: Instant
  /// They hold up earlier looks.
  var passedOver: Set<ProcessIdentity> = []
  let progress = LookProgress()

  /// A program forks first and then becomes another: a young process is looked at each time.
  static let youth = Duration.seconds(15)
  /// An older one that changes its program or its cgroup is noticed after this long, and half as long again.
  static let memory = Duration.seconds(40)

  /// nil: /proc can't be listed.
  func perform() -> Outcome? {
    guard let listed = try? ListedProcess.all() else { return nil }
    var pass = RulePass(look: self)
    for process in listed { pass.visit(process) }
    return pass.outcome(listed.count)
  }
}

extension RuleLook {
  /// With the numbers of the users that the rules name; a look-up may wait for a name service.
  static func resolved(_ matching: RuleMatching) -> RuleMatching {
    var matching = matching
    for user in RuleMatching.namedUsers(in: matching.rules) {
      switch user {
      case .me: matching.users[user] = OwnIdentity.user
      case .number: break
      // A user that the machine doesn't know has no processes.
      case .name(let name):
        matching.users[user] = (try? Account(user: name, group: nil))?.identity.user
      }
    }
    return matching
  }
}

/// The state of one look.
private struct RulePass {
  let look: RuleLook
  private var matching: RuleMatching
  private var stats: [Int32: ProcessStat?] = [:]
  private var standings: [Int32: RuleLook.Standing] = [:]
  private var result = RuleLook.Outcome()

  init(look: RuleLook) {
    self.look = look
    matching = RuleLook.resolved(look.matching)
  }

  func outcome(_ listed: Int) -> RuleLook.Outcome {
    var result = result
    result.listed = listed
    result.read = stats.count
    return result
  }

  mutating func visit(_ process: ListedProcess) {
    let pid = process.pid
    if let known = look.known[pid], known.inode == process.inode, look.now < known.due {
      result.known[pid] = known
      return
    }
    guard let stat = stat(of: pid), !stat.isEnded, !look.passedOver.contains(stat.identity) else {
      return
    }
    let observation = ProcessObservation(stat, now: look.now)
    let standing = standing(of: observation)
    result.known[pid] = RuleLook.Known(
      inode: process.inode, startTime: stat.startTime,
      due: look.now + patience(standing, of: observation), standing: standing)
    if case .matched(let rule, let matched) = standing {
      result.found.append(
        RuleLook.Found(
          process: stat.identity, rule: rule, matched: matched,
          command: observation.words ?? [stat.name]))
    }
  }

  /// The time until it is read again. Not all that the first look has found are due at the same time.
  private func patience(
    _ standing: RuleLook.Standing, of process: ProcessObservation
  ) -> Duration {
    switch standing {
    case .unmatched, .owned:
      process.age < RuleLook.youth
        ? .zero : RuleLook.memory + .seconds(Int(process.stat.pid) % 20)
    case .matched(_, .ready): .zero
    case .matched(_, .tooYoung(let rest)): min(rest, .seconds(60))
    case .matched: .seconds(15)
    }
  }

  private mutating func stat(of pid: Int32) -> ProcessStat? {
    if let known = stats[pid] { return known }
    // It has ended.
    let stat = try? ProcessStat.read(pid)
    stats[pid] = .some(stat)
    return stat
  }

  // MARK: one process

  private mutating func standing(of process: ProcessObservation) -> RuleLook.Standing {
    let pid = process.stat.pid
    if let known = standings[pid] { return known }
    // As an ancestor, too: whether a rule matches it isn't known.
    let standing =
      look.passedOver.contains(process.stat.identity)
      ? .unmatched : look.progress.reading(process.stat.identity) { decide(process) }
    standings[pid] = standing
    return standing
  }

  private mutating func decide(_ process: ProcessObservation) -> RuleLook.Standing {
    let stat = process.stat
    if stat.pid == 1 || isOfKernel(stat) { return .unmatched }
    let ancestors = ancestors(of: stat)
    if isOwned(stat, ancestors) { return .owned }
    guard let choice = matching.choose(process) else { return .unmatched }
    let rule = choice.rule
    if look.released.contains(stat.identity) { return .matched(rule, .released) }
    if let container = container(among: ancestors) {
      return .matched(rule, .contained(container))
    }
    switch choice.condition {
    case .tooYoung(let rest): return .matched(rule, .tooYoung(rest))
    case .tooSmall(let footprint, let least):
      return .matched(rule, .tooSmall(footprint, least: least))
    case .met: break
    }
    return .matched(rule, refusal(of: stat, ancestors, by: rule).map { .refused($0) } ?? .ready)
  }

  /// Threads of the kernel are children of its second process. In a container that number is any process's.
  private mutating func isOfKernel(_ stat: ProcessStat) -> Bool {
    (stat.pid == 2 || stat.parent == 2) && self.stat(of: 2)?.name == "kthreadd"
  }

  /// The nearest first.
  private mutating func ancestors(of stat: ProcessStat) -> [ProcessStat] {
    var found: [ProcessStat] = []
    var pid = stat.parent
    while pid > 1, found.count < 64, let parent = self.stat(of: pid) {
      found.append(parent)
      pid = parent.parent
    }
    return found
  }

  private mutating func isOwned(_ stat: ProcessStat, _ ancestors: [ProcessStat]) -> Bool {
    if look.owned.isEmpty { return false }
    for process in [stat] + ancestors {
      if look.owned[process.pid] == process.startTime || isLed(process) { return true }
    }
    return false
  }

  /// A worker that Dormouse has started leads a session, in which what it leaves behind stays.
  private mutating func isLed(_ process: ProcessStat) -> Bool {
    guard let start = look.owned[process.session], start <= process.startTime else { return false }
    // The number may be another session's by now.
    return self.stat(of: process.session).map { $0.startTime == start } ?? true
  }

  /// The nearest ancestor that a rule matches, whether it is adopted or not.
  private mutating func container(among ancestors: [ProcessStat]) -> Int32? {
    for ancestor in ancestors {
      let standing: RuleLook.Standing
      if let known = result.known[ancestor.pid] ?? look.known[ancestor.pid],
        known.startTime == ancestor.startTime
      {
        standing = known.standing
      } else {
        standing = self.standing(of: ProcessObservation(ancestor, now: look.now))
      }
      if case .matched = standing { return ancestor.pid }
    }
    return nil
  }

  // MARK: what isn't adopted

  private mutating func refusal(
    of stat: ProcessStat, _ ancestors: [ProcessStat], by rule: Int
  ) -> String? {
    let managers = ([stat] + ancestors).filter {
      ["dormouse", WrapperTree.processName].contains($0.name) && $0.pid != OwnIdentity.pid
    }
    if let wrapper = managers.first {
      return "it was started by another Dormouse (pid \(wrapper.pid))"
    }
    if let refusal = ExternalProcess.refusal(of: stat) { return refusal }
    if matching.rules[rule].includesTerminals { return nil }
    let parent = ancestors.first
    return TerminalUse(
      pid: stat.pid, terminal: stat.terminal, session: stat.session, group: stat.processGroup,
      parentSession: parent?.session ?? 0, parentGroup: parent?.processGroup ?? 0,
      readsTerminal: stat.terminal != 0 && ProcessDetails.readsTerminal(stat.pid)
    ).refusal.map { "\($0) (`terminal: true` in the rule adopts it)" }
  }
}
