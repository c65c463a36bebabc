import Lifecycle
import Policy

/// How one run of a worker ends, from the request, or the end of its root process, until nothing of it is left:
///
///     asked ─▶ root ended ─▶ looked for what is left ─▶ cleared ─▶ reaped ─▶ group removed ─▶ last words ─▶ ended
///                 ▲                    │ may still save   │ ▲
///                 └────────────────────┘                  └─┘ failed: again, after a growing pause
///
/// Each step has a patience, after which the next one follows without its outcome; an outcome counts once, and
/// not after its step. So `isGone` is called exactly once, whatever other threads do. Belongs to the loop's
/// thread; a run has one, and the process that takes its root's place has another.
final class WorkerEnding {
  enum Step: Hashable {
    /// The root process runs, as far as is known.
    case runs
    /// The root process has ended. An operation on its memory or a SIGKILL is under way, or its other processes
    /// may still save their work.
    case waits
    case looks
    /// What is left is being ended, or will be again after a pause.
    case clears
    /// Its control group is being removed, and the end of its log read.
    case tidies
    case isOver
  }

  /// A process may keep others from reading what it is, and a thread may hang with it.
  static let patience = Duration.seconds(15)
  static let maxTries = 6
  /// An operation reports its end itself; if the report is lost, this look finds it.
  static let interval = Duration.seconds(1)
  /// Between two looks at processes that may still save their work.
  static let savingInterval = Duration.milliseconds(10)

  private let timers: any Timers
  private let mechanics: any EndMechanics
  private let host: any EndHost

  private(set) var step = Step.runs
  /// It was asked to end, or SIGKILL was sent.
  private(set) var hasBegun = false
  /// SIGKILL has been sent to all of it.
  private(set) var isKilled = false
  /// The root's number may be another process's by now.
  private(set) var isReaped = false
  private var outcomes = OperationCount()
  /// Of the step: its patience, or its next try.
  private var timer: EventLoop.Token?
  /// The patience for each SIGKILL that is under way.
  private var kills: [UInt64: EventLoop.Token] = [:]
  private var killCount: UInt64 = 0
  /// SIGKILLs in a row that failed, and when the next one follows.
  private var failedKills = 0
  private var nextKill: EventLoop.Token?
  static let killPauses = Backoff()

  init(timers: any Timers, mechanics: any EndMechanics, host: any EndHost) {
    self.timers = timers
    self.mechanics = mechanics
    self.host = host
  }

  /// The root process has ended. No further operation begins: `isGone` follows, and completes all of them.
  var hasExited: Bool { step != .runs }

  // MARK: what ends it

  /// Asks all of it to end (as systemd does by default: a shell that is asked alone would leave its
  /// children behind), and lets it run for that.
  ///
  /// - Parameter signal: instead of its stop signal. Its end isn't announced over `DORMOUSE_WORKER_SOCKET` then.
  func terminate(by signal: Int32? = nil) {
    guard step == .runs else { return }
    hasBegun = true
    host.stopListening()
    if host.isMemoryUnverified { return kill() }
    host.willBeAsked()
    if signal == nil, host.runStopCommand(then: { [weak self] in self?.ask(by: nil) }) {
      // The command needs a worker that runs.
      return mechanics.wake(askingBy: nil, then: hasWoken)
    }
    ask(by: signal)
  }

  private func ask(by signal: Int32?) {
    guard step == .runs else { return }
    let asked = signal ?? host.stopSignal
    let isAnnounced = signal == nil && host.announceEnd { [mechanics] in mechanics.ask(by: asked) }
    // The signal is pending while the worker is frozen or stopped, and delivered when it continues.
    mechanics.wake(askingBy: isAnnounced ? nil : asked, then: hasWoken)
  }

  private var hasWoken: (String?) -> Void {
    { [host] failure in
      if let failure { host.log(.warning, "can't be woken before its end: \(failure)") }
    }
  }

  func kill() {
    guard step != .isOver else { return }
    // All have been killed.
    if isReaped, !mechanics.hasGroup { return }
    set(nextKill: nil)
    (hasBegun, isKilled) = (true, true)
    killCount += 1
    let number = killCount
    kills[number] = timers.after(Self.patience) { [weak self] in
      self?.killHasEnded(number, "no effect of SIGKILL within \(Self.patience.spoken)")
    }
    mechanics.kill { [weak self, host] failure in
      guard let self else {
        if let failure { host.log(.warning, failure) }
        return
      }
      killHasEnded(number, failure)
      failedKills = failure == nil ? 0 : failedKills + 1
      if failure != nil { killLater() }
    }
  }

  /// The engine has sent its last directive for this end, so nothing else would end the worker.
  private func killLater() {
    guard step == .runs else { return }
    let pause = Self.killPauses.delay(afterRestarts: failedKills - 1)
    host.log(.warning, "next SIGKILL in \(pause.spoken)")
    set(
      nextKill: timers.after(pause) { [weak self] in
        guard let self, step == .runs else { return }
        kill()
      })
  }

  private func killHasEnded(_ number: UInt64, _ failure: String?) {
    if let failure { host.log(.warning, failure) }
    guard let timer = kills.removeValue(forKey: number) else { return }
    timers.cancel(timer)
    if step == .waits { rootHasEnded() }
  }

  /// The run is replaced: no outcome counts any more, and every timer is given back.
  func end() {
    step = .isOver
    set(timer: nil)
    set(nextKill: nil)
    for timer in kills.values { timers.cancel(timer) }
    kills = [:]
  }

  // MARK: the root process has ended

  /// Also called when something ends for which `isActedOn` was true, and as often as that may be.
  func rootHasEnded() {
    guard step == .runs || step == .waits else { return }
    host.rootHasEnded()
    // Its last message may have led to its end by another way.
    guard step == .runs || step == .waits else { return }
    step = .waits
    set(nextKill: nil)
    look()
  }

  private var mustWait: Bool { host.isActedOn || !kills.isEmpty }

  private func look() {
    if mustWait { return lookAgain(in: Self.interval) }
    step = .looks
    begin(orElse: .unknown) {
      $0.lookForWhatIsLeft(then: $1)
    } then: {
      $0.hasLooked($1)
    }
  }

  private func lookAgain(in pause: Duration) {
    step = .waits
    set(timer: timers.after(pause) { [weak self] in self?.rootHasEnded() })
  }

  private func hasLooked(_ left: WhatIsLeft) {
    if mustWait { return lookAgain(in: Self.interval) }
    // A shell that was asked to end does so at once. What it leaves behind has been asked as well.
    if !left.isEmpty, host.isTerminating, !isKilled { return lookAgain(in: Self.savingInterval) }
    if host.isExternal {
      end()
      return host.externalRootHasEnded()
    }
    clear(others: left.others, tries: 1)
  }

  // MARK: what is left is ended

  private func clear(others: Int, tries: Int) {
    step = .clears
    begin(orElse: nil) { (mechanics, then: @escaping (Clearing?) -> Void) in
      mechanics.clear { then($0) }
    } then: {
      $0.hasCleared($1, others: others, tries: tries)
    }
  }

  /// - Parameter outcome: nil: there is none.
  private func hasCleared(_ outcome: Clearing?, others: Int, tries: Int) {
    let failure = outcome.map(\.failure) ?? "can't look for its remaining processes"
    if let failure {
      host.log(.warning, "can't kill all of its processes: \(failure)")
      // A thread hangs: another try would hang, too.
      if outcome != nil, tries < Self.maxTries {
        let pause = Duration.seconds(Int64(1) << Int64(tries - 1))
        host.log(.warning, "next attempt in \(pause.spoken)")
        return set(
          timer: timers.after(pause) { [weak self] in
            self?.clear(others: others, tries: tries + 1)
          })
      }
    }
    reap(others: others + (outcome?.strays ?? 0))
  }

  private func reap(others: Int) {
    if others > 0, host.isUnexpected {
      host.log(
        .warning,
        "its first process has ended; its \(others) other processes are ended with "
          + "it; if the program puts itself into the background, use its option that prevents that")
    }
    let status = mechanics.reap()
    isReaped = true
    step = .tidies
    host.isReaped(status, leavingBehind: others)
    removeGroup(status)
  }

  /// The worker has ended when all of it has ended, and its cgroup can be used again.
  private func removeGroup(_ status: ExitStatus) {
    let lost = "can't remove its cgroup within \(Self.patience.spoken)"
    begin(orElse: lost) {
      $0.removeGroup(then: $1)
    } then: {
      if let failure = $1 { $0.host.log(.warning, failure) }
      $0.readLastLines(status)
    }
  }

  private func readLastLines(_ status: ExitStatus) {
    begin(orElse: nil) {
      $0.readLastLines(then: $1)
    } then: {
      $0.end()
      $0.host.isGone(status, lastLines: $1)
    }
  }

  // MARK: outcomes

  /// - Parameter lost: what counts as the outcome when the patience is over.
  private func begin<Outcome>(
    orElse lost: Outcome,
    _ work: (any EndMechanics, @escaping (Outcome) -> Void) -> Void,
    then: @escaping (WorkerEnding, Outcome) -> Void
  ) {
    let number = outcomes.begin()
    let take: (Outcome) -> Void = { [weak self] outcome in
      guard let self, step != .isOver, outcomes.isLatest(number) else { return }
      // The same outcome again, or later, isn't the latest any more.
      _ = outcomes.begin()
      set(timer: nil)
      then(self, outcome)
    }
    set(timer: timers.after(Self.patience) { take(lost) })
    work(mechanics, take)
  }

  /// There is one at most.
  private func set(timer new: EventLoop.Token?) {
    if let timer { timers.cancel(timer) }
    timer = new
  }

  private func set(nextKill new: EventLoop.Token?) {
    if let nextKill { timers.cancel(nextKill) }
    nextKill = new
  }
}
