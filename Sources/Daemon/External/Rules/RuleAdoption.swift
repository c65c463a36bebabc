import Lifecycle
import Linux
import Policy

/// The functions of the daemon that `RuleAdoption` uses. Tests provide their own.
protocol RuleAdoptionHost: AnyObject {
  /// The daemon ends, or leaves its workers.
  var isClosing: Bool { get }
  /// Why workers of rules can't sleep on this machine; nil: they can.
  var obstacle: String? { get }
  /// Looks on another thread, and calls back once, later; nil: it took too long.
  func look(_ look: RuleLook, then: @escaping (RuleLook.Outcome?) -> Void)
  /// Which rule each of these workers belongs to now; nil: it took too long.
  func examineAgain(
    _ workers: [RuledWorker], by matching: RuleMatching,
    then: @escaping ([WorkerID: AdoptionRule]?) -> Void)
  func owner(of pid: Int32) -> WorkerID?
  func adopt(_ ruled: RuledProcess, then: @escaping (AdoptionRefusal?) -> Void)
  /// - Parameter then: with a sentence if it couldn't be released.
  func release(_ id: WorkerID, then: @escaping (String?) -> Void)
  /// The engine and the next daemon know what has changed.
  func hasChanged(_ runtime: WorkerUnit)
  func log(_ priority: DaemonLog.Priority, _ text: String)
}

/// A worker that a rule has adopted. Its memory may be on disk, so that its command line can't be read.
struct RuledWorker: Sendable {
  var id: WorkerID
  var process: ProcessIdentity
  var command: [String]
}

/// `adopt:` of the configuration: looks for processes that its rules match, and adopts them. Without a rule nothing
/// is looked at. Belongs to the loop's thread.
final class RuleAdoption {
  private let timers: any Timers
  private let workers: WorkerRegistry
  private let released: ReleasedProcesses
  private let host: any RuleAdoptionHost

  private(set) var rules: [AdoptionRule] = []
  private var known: [Int32: RuleLook.Known] = [:]
  /// Rises with each change of the rules: what was found by earlier ones isn't adopted.
  private var generation = 0
  private var next: LoopToken?
  private var isLooking = false
  /// Found, and not adopted yet: one is examined after the other.
  private var waiting: [RuledProcess] = []
  private var isAdopting = false
  /// What was logged of a process, so that it isn't logged again.
  private var noted: [ProcessIdentity: String] = [:]
  private var isSlow = false
  private var unanswering = UnansweringProcesses()

  static let interval = Duration.seconds(5)
  /// After an examination or a release that has failed.
  private static let retry = Duration.seconds(30)

  init(
    timers: any Timers, workers: WorkerRegistry, released: ReleasedProcesses,
    host: any RuleAdoptionHost
  ) {
    self.timers = timers
    self.workers = workers
    self.released = released
    self.host = host
  }

  /// At the daemon's start, and when the configuration was read again.
  func follow(_ rules: [AdoptionRule]) {
    guard rules != self.rules || generation == 0 else { return }
    self.rules = rules
    generation += 1
    known = [:]
    waiting = []
    noted = [:]
    if !rules.isEmpty, let obstacle = host.obstacle {
      host.log(.warning, "adoption by rule: \(obstacle)")
    }
    released.keepOnly(rules) { [host] in host.log(.warning, $0) }
    examineWorkers()
    lookSoon()
  }

  /// The operator has released it.
  func wasReleased(_ process: ProcessIdentity, from rule: String) {
    guard let rule = rules.first(where: { $0.name == rule }) else { return }
    released.add(process, from: rule) { [host] in host.log(.warning, $0) }
  }

  /// What the rules would take of all processes that run now, and what they have taken.
  func preview(footprint: (WorkerID) -> ByteCount) -> AdoptionPreview {
    let adopted = workers.values.compactMap { runtime -> AdoptionPreview.Adopted? in
      guard let rule = runtime.external?.rule, let process = runtime.process else { return nil }
      return AdoptionPreview.Adopted(
        worker: runtime.id.name, rule: rule, process: process.identity, session: process.session,
        command: runtime.configuration.command, footprint: footprint(runtime.id))
    }
    return AdoptionPreview(
      look: look(known: [:]), adopted: adopted.sorted { $0.worker < $1.worker })
  }

  // MARK: looks

  private func look(known: [Int32: RuleLook.Known]) -> RuleLook {
    let roots = workers.values.compactMap { $0.process?.identity }
    return RuleLook(
      matching: RuleMatching(rules),
      owned: Dictionary(roots.map { ($0.pid, $0.startTime) }) { first, _ in first },
      released: released.processes, known: known, now: timers.now,
      passedOver: unanswering.identities)
  }

  private func lookSoon() {
    if let next { timers.cancel(next) }
    next = nil
    if !isLooking { lookNow() }
  }

  private func lookLater() {
    if next != nil || isLooking { return }
    next = timers.after(Self.interval) { [unowned self] in
      next = nil
      lookNow()
    }
  }

  private func lookNow() {
    guard !rules.isEmpty, !host.isClosing else { return }
    isLooking = true
    let asked = generation
    unanswering.removeAnswered()
    let look = look(known: known)
    host.look(look) { [unowned self] outcome in
      isLooking = false
      guard !host.isClosing else { return }
      if outcome == nil, let process = unanswering.add(look.progress) {
        host.log(
          .warning,
          "adoption by rule: pid \(process.pid) can't be read: its memory or its file system doesn't answer. "
            + "It isn't adopted until it does")
        return lookNow()
      }
      // The rules have changed meanwhile.
      guard asked == generation else { return lookNow() }
      if let outcome { found(outcome) }
      noteSlowness(outcome == nil)
      lookLater()
    }
  }

  private func noteSlowness(_ isSlow: Bool) {
    if isSlow, !self.isSlow {
      host.log(
        .warning, "adoption by rule: /proc can't be read in time. Nothing is adopted until it can")
    }
    self.isSlow = isSlow
  }

  private func found(_ outcome: RuleLook.Outcome) {
    known = outcome.known
    // What still waits is found again.
    waiting = []
    for each in outcome.found {
      let ruled = RuledProcess(process: each.process, rule: rules[each.rule])
      switch each.matched {
      case .ready: waiting.append(ruled)
      case .refused(let why): note(ruled, why)
      case .tooYoung, .tooSmall, .contained, .released: break
      }
    }
    // What has ended isn't named again.
    if noted.count > 1000 { noted = noted.filter { known[$0.key.pid] != nil } }
    adoptNext()
  }

  /// Once for a process and reason.
  private func note(_ ruled: RuledProcess, _ why: String) {
    guard noted.updateValue(why, forKey: ruled.process) != why else { return }
    host.log(.notice, "rule \(ruled.rule.name): pid \(ruled.process.pid) isn't adopted: \(why)")
  }

  // MARK: adoption

  private func adoptNext() {
    guard !isAdopting, !host.isClosing else { return }
    while !waiting.isEmpty {
      let ruled = waiting.removeFirst()
      // It was adopted while it waited.
      if host.owner(of: ruled.process.pid) != nil { continue }
      if let why = refusal(by: ruled.rule) {
        note(ruled, why)
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
    host.adopt(ruled) { [unowned self] refusal in
      isAdopting = false
      if let refusal { note(ruled, refusal.text) }
      // Adopted by a rule that is no longer the same.
      if refusal == nil, asked != generation { examineWorkers() }
      adoptNext()
    }
  }

  // MARK: a change of the rules

  /// Those that no rule matches any more are released, and the others get the policy of their rule.
  private func examineWorkers() {
    let ruled = workers.values.compactMap { runtime -> RuledWorker? in
      guard runtime.external?.rule != nil, let process = runtime.process else { return nil }
      return RuledWorker(
        id: runtime.id, process: process.identity, command: runtime.configuration.command)
    }
    if ruled.isEmpty { return }
    let asked = generation
    host.examineAgain(ruled, by: RuleMatching(rules)) { [unowned self] choices in
      guard asked == generation, !host.isClosing else { return }
      guard let choices else {
        host.log(.warning, "the workers of rules can't be examined in time; they stay as they are")
        return examineLater()
      }
      for worker in ruled { apply(choices[worker.id], to: worker) }
    }
  }

  private func examineLater() {
    let asked = generation
    timers.after(Self.retry) { [unowned self] in
      if asked == generation, !host.isClosing { examineWorkers() }
    }
  }

  private func apply(_ rule: AdoptionRule?, to worker: RuledWorker) {
    guard let runtime = workers[worker.id], runtime.process?.identity == worker.process else {
      return
    }
    guard let rule else {
      host.log(.notice, "\(worker.id): no rule matches it any more")
      return host.release(worker.id) { [unowned self] failure in
        guard let failure else { return }
        host.log(.warning, "\(worker.id) can't be released: \(failure)")
        examineLater()
      }
    }
    let old = (runtime.external?.rule, runtime.external?.mayBeTerminated, runtime.configuration)
    runtime.external?.rule = rule.name
    runtime.external?.mayBeTerminated = rule.mayTerminate
    runtime.configuration.importance = rule.importance
    runtime.configuration.policy = rule.effectivePolicy
    let new = (runtime.external?.rule, runtime.external?.mayBeTerminated, runtime.configuration)
    if old != new { host.hasChanged(runtime) }
  }
}
