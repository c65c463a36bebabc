import Lifecycle
import Linux
import Policy
import Supervision

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

  let handle: WorkerHandle
  let process: WorkerProcess
  let ends: WorkerEnds

  private(set) var step = Step.runs
  /// It was asked to end, or SIGKILL was sent.
  var hasBegun = false
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

  init(of worker: WorkerUnit, process: WorkerProcess, ends: WorkerEnds) {
    handle = WorkerHandle(worker: worker, driver: ends.driver, log: ends.log)
    self.process = process
    self.ends = ends
  }

  var id: WorkerID { handle.id }
  private var timers: any Timers { ends.loop }
  var processes: any WorkerProcesses { ends.processes }

  /// The root process has ended. No further operation begins: `isGone` follows, and completes all of them.
  var hasExited: Bool { step != .runs }

  // MARK: SIGKILL

  func kill() {
    guard step != .isOver else { return }
    // All have been killed.
    if isReaped, process.cgroup == nil { return }
    set(nextKill: nil)
    (hasBegun, isKilled) = (true, true)
    handle.worker?.run.stopCommand?.cancel()
    killCount += 1
    let number = killCount
    kills[number] = timers.after(Self.patience) { [weak self] in
      self?.killHasEnded(number, "no effect of SIGKILL within \(Self.patience.spoken)")
    }
    processes.kill(process, of: id.name) { [weak self, handle] failure in
      guard let self else {
        if let failure { handle.log(.warning, failure) }
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
    handle.log(.warning, "next SIGKILL in \(pause.spoken)")
    set(
      nextKill: timers.after(pause) { [weak self] in
        guard let self, step == .runs else { return }
        kill()
      })
  }

  private func killHasEnded(_ number: UInt64, _ failure: String?) {
    if let failure { handle.log(.warning, failure) }
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

  /// Also called when an operation on its memory has ended, and as often as that may be.
  func rootHasEnded() {
    guard step == .runs || step == .waits else { return }
    takeLastMessages()
    // Its last message may have led to its end by another way.
    guard step == .runs || step == .waits else { return }
    step = .waits
    set(nextKill: nil)
    look()
  }

  /// As long as the sender is known. Nothing is watched any more.
  private func takeLastMessages() {
    guard let worker = handle.worker else { return }
    worker.wakeWatch?.stop()
    if worker.configuration.fdstore > 0 { worker.conversation?.receiveNotifications(limit: 64) }
    worker.traffic = nil
    if let token = worker.exitWatch { ends.loop.unwatch(process.pidfd, token) }
    worker.exitWatch = nil
  }

  /// A process may not be reaped while its memory is being worked on: that could take a stop away from the thread
  /// that traces it.
  private var mustWait: Bool { handle.worker?.sleep?.isActing == true || !kills.isEmpty }

  private func look() {
    if mustWait { return lookAgain(in: Self.interval) }
    step = .looks
    begin(orElse: .unknown) {
      $0.processes.lookForWhatIsLeft(of: $0.process, then: $1)
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
    if !left.isEmpty, handle.state == .terminating, !isKilled {
      return lookAgain(in: Self.savingInterval)
    }
    if let worker = handle.worker, worker.external != nil { return externalEnds(worker) }
    clear(others: left.others, tries: 1)
  }

  /// Another program supervises it: its other processes aren't ended, and it isn't reaped.
  private func externalEnds(_ worker: WorkerUnit) {
    end()
    ends.externalRootHasEnded(worker)
    // Another process represents the worker now, and has an end of its own.
    if worker.process != nil { worker.ending = nil }
  }

  // MARK: what is left is ended

  private func clear(others: Int, tries: Int) {
    step = .clears
    let mark = ends.launchPlanner.mark(of: id)
    let notify = handle.worker?.conversation?.notifyPath
    begin(orElse: nil) { (ending, then: @escaping (Clearing?) -> Void) in
      ending.processes.clear(ending.process, of: ending.id.name, mark: mark, notify: notify) {
        then($0)
      }
    } then: {
      $0.hasCleared($1, others: others, tries: tries)
    }
  }

  /// - Parameter outcome: nil: there is none.
  private func hasCleared(_ outcome: Clearing?, others: Int, tries: Int) {
    let failure = outcome.map(\.failure) ?? "can't look for its remaining processes"
    if let failure {
      handle.log(.warning, "can't kill all of its processes: \(failure)")
      // A thread hangs: another try would hang, too.
      if outcome != nil, tries < Self.maxTries {
        let pause = Duration.seconds(Int64(1) << Int64(tries - 1))
        handle.log(.warning, "next attempt in \(pause.spoken)")
        return set(
          timer: timers.after(pause) { [weak self] in
            self?.clear(others: others, tries: tries + 1)
          })
      }
    }
    reap(others: others + (outcome?.strays ?? 0))
  }

  private func reap(others: Int) {
    if others > 0, ends.requests.isAlive(id), handle.state != .terminating {
      handle.log(
        .warning,
        "its first process has ended; its \(others) other processes are ended with "
          + "it; if the program puts itself into the background, use its option that prevents that")
    }
    let status = status(processes.reap(process, of: id.name))
    isReaped = true
    step = .tidies
    ends.restarts.record(leftBehind: others, by: id)
    removeGroup(status)
  }

  private func status(_ exit: WorkerExit) -> ExitStatus {
    guard let worker = handle.worker else { return ExitStatus(exit) }
    let status = ends.kernelKills.status(exit, of: worker)
    if status == .outOfMemory { ends.kernelKills.keepReport(ofKernelKill: worker) }
    return status
  }

  /// The worker has ended when all of it has ended, and its cgroup can be used again.
  private func removeGroup(_ status: ExitStatus) {
    let lost = "can't remove its cgroup within \(Self.patience.spoken)"
    begin(orElse: lost) {
      $0.processes.removeGroup(of: $0.process, $0.id.name, then: $1)
    } then: {
      if let failure = $1 { $0.handle.log(.warning, failure) }
      $0.readLastLines(status)
    }
  }

  private func readLastLines(_ status: ExitStatus) {
    begin(orElse: nil) {
      $0.processes.readLastLines(of: $0.process, $0.id.name, then: $1)
    } then: {
      $0.end()
      if let worker = $0.handle.worker { $0.ends.concludeRun(worker, status, lastLines: $1) }
    }
  }

  // MARK: outcomes

  /// - Parameter lost: what counts as the outcome when the patience is over.
  private func begin<Outcome>(
    orElse lost: Outcome,
    _ work: (WorkerEnding, @escaping (Outcome) -> Void) -> Void,
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
    work(self, take)
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
