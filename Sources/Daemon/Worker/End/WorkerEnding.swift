import Lifecycle
import Linux
import Policy
import Supervision

/// Ends one run of a worker. It begins with a request, or with the end of the run's root process,
/// and completes when no process of the run is left:
///
///     asked ─▶ root ended ─▶ scanned ─▶ cleared ─▶ reaped ─▶ cgroup removed ─▶ log read ─▶ ended
///                 ▲             │ may     │ ▲
///                 └─────────────┘ save    └─┘ failed: again, after a growing pause
///
/// Each step has a timeout, after which the next one follows. An outcome counts once, and not after
/// its step. So `WorkerEnds.concludeRun` is called exactly once, whatever other threads do. Belongs
/// to the loop's thread. Each run has one; a process that replaces the root process has another.
final class WorkerEnding {
  enum Step: Hashable {
    /// No end of the root process has been reported.
    case running
    /// The root process has ended. An operation on its memory or a SIGKILL hasn't completed, or the
    /// worker's other processes may still save their work.
    case waiting
    /// The worker's remaining processes are searched and killed, its cgroup is removed, and the end
    /// of its log is read.
    case finishing
    case ended
  }

  /// The timeout of each step. A process may keep others from reading its entries in /proc, and a
  /// thread may hang at them.
  static let timeout = Duration.seconds(15)
  static let maxTries = 6
  /// An operation reports its end. If the report is lost, a check at this interval detects it.
  static let interval = Duration.seconds(1)
  /// The interval of checks for processes that may still save their work.
  static let savingInterval = Duration.milliseconds(10)
  /// Processes that an adopted one has left asleep must run after 30 s.
  static let maxSleeperChecks = 300

  let handle: WorkerHandle
  let process: WorkerProcess
  let ends: WorkerEnds

  private(set) var step = Step.running
  /// The worker was asked to end, or SIGKILL was sent.
  var hasBegun = false
  /// SIGKILL has been sent to all processes of the worker.
  private(set) var isKilled = false
  /// The root process has been reaped. Its pid may be that of another process by now.
  private(set) var isReaped = false
  /// The current step, or the wait for its next attempt.
  private let operation: TimedOperation
  /// How often processes were left that still slept.
  private var sleeperChecks = 0
  /// The timeout of each SIGKILL whose outcome isn't known yet.
  private var kills: [UInt64: EventLoop.Token] = [:]
  private var killCount: UInt64 = 0
  /// The number of SIGKILLs in a row that failed.
  private var failedKills = 0
  /// The timer of the next SIGKILL.
  private let nextKill: TimedOperation
  static let killPauses = Backoff()
  /// The worker's stop command while it runs. Nothing else may reap it.
  var stopCommand: FollowedProgram?
  var hasStopCommandRun = false
  let stopCommandDeadline: TimedOperation

  init(of worker: WorkerUnit, process: WorkerProcess, ends: WorkerEnds) {
    handle = WorkerHandle(worker: worker, driver: ends.driver, log: ends.log)
    self.process = process
    self.ends = ends
    operation = TimedOperation(ends.loop)
    nextKill = TimedOperation(ends.loop)
    stopCommandDeadline = TimedOperation(ends.loop)
  }

  var id: WorkerID { handle.id }
  private var timers: any Timers { ends.loop }
  var processes: any WorkerProcesses { ends.processes }

  /// The root process has ended. No operation begins any more; `WorkerEnds.concludeRun` follows.
  var hasExited: Bool { step != .running }

  // MARK: SIGKILL

  func kill() {
    guard step != .ended else { return }
    // All processes have been killed.
    if isReaped, process.cgroup == nil { return }
    nextKill.cancel()
    (hasBegun, isKilled) = (true, true)
    cancelStopCommand()
    killCount += 1
    let number = killCount
    kills[number] = timers.after(Self.timeout) { [weak self] in
      self?.killDidEnd(number, "no effect of SIGKILL within \(Self.timeout.text)")
    }
    processes.kill(process, of: id.name) { [weak self, handle] failure in
      guard let self else {
        if let failure { handle.log(.warning, failure) }
        return
      }
      killDidEnd(number, failure)
      failedKills = failure == nil ? 0 : failedKills + 1
      if failure != nil { killLater() }
    }
  }

  /// Sends SIGKILL again after a pause. The engine has sent its last directive for this end, so
  /// nothing else would end the worker.
  private func killLater() {
    guard step == .running else { return }
    let pause = Self.killPauses.delay(afterRestarts: failedKills - 1)
    handle.log(.warning, "next SIGKILL in \(pause.text)")
    nextKill.wait(pause) { [unowned self] in
      if step == .running { kill() }
    }
  }

  private func killDidEnd(_ number: UInt64, _ failure: String?) {
    if let failure { handle.log(.warning, failure) }
    guard let timer = kills.removeValue(forKey: number) else { return }
    timers.cancel(timer)
    if step == .waiting { rootDidEnd() }
  }

  /// Ends this object with the run. No outcome counts any more, and all timers are cancelled.
  func end() {
    step = .ended
    operation.cancel()
    nextKill.cancel()
    cancelStopCommand()
    for timer in kills.values { timers.cancel(timer) }
    kills = [:]
  }

  // MARK: the end of the root process

  /// Handles the end of the root process, or of an operation on its memory. It may be called any
  /// number of times.
  func rootDidEnd() {
    guard step == .running || step == .waiting else { return }
    if waitForSleepers() { return }
    readLastMessages()
    // Handling its last message may already have completed its end.
    guard step == .running || step == .waiting else { return }
    step = .waiting
    nextKill.cancel()
    scan()
  }

  /// Wakes the processes that an adopted one has left asleep, and waits until they run: after the
  /// end of the run nothing would wake them. All of a cgroup have a successor of the first one.
  ///
  /// - Returns: false if there are none, or if they can't be woken in time.
  private func waitForSleepers() -> Bool {
    guard let worker = handle.worker, worker.external != nil, process.cgroup == nil, !isKilled,
      let state = handle.state, state.sleeps || state.isTransit,
      worker.sleepers.contains(where: { $0 != process.identity && !$0.hasEnded })
    else { return false }
    guard sleeperChecks < Self.maxSleeperChecks else {
      handle.log(.warning, "its other processes still sleep, and can't be woken")
      return false
    }
    sleeperChecks += 1
    // An operation may begin. The pidfd stays readable, so it isn't watched any more.
    step = .running
    if let token = worker.exitWatch { ends.loop.unwatch(process.pidfd, token) }
    worker.exitWatch = nil
    operation.wait(WorkerSleeps.managerInterval) { [unowned self] in rootDidEnd() }
    if state.sleeps {
      handle.send(.wakeNeeded(id, "the end of its process \(process.identity.pid)"))
    }
    return true
  }

  /// Reads the last messages while their sender can still be identified, and ends all watches.
  private func readLastMessages() {
    guard let worker = handle.worker else { return }
    worker.wakeWatch?.stop()
    if worker.configuration.fdstore > 0 { worker.conversation?.receiveNotifications(limit: 64) }
    worker.traffic = nil
    if let token = worker.exitWatch { ends.loop.unwatch(process.pidfd, token) }
    worker.exitWatch = nil
  }

  /// Whether the process must not be reaped yet. While an operation works on its memory, waitid
  /// would consume a ptrace stop that the tracing thread waits for.
  private var mustWait: Bool { handle.worker?.sleep?.isActing == true || !kills.isEmpty }

  private func scan() {
    if mustWait { return checkLater(in: Self.interval) }
    step = .finishing
    operation.begin(within: Self.timeout, orElse: RemainingProcesses.unknown) {
      processes.findRemainingProcesses(of: process, then: $0)
    } then: { [unowned self] (left: RemainingProcesses) in
      didScan(left)
    }
  }

  private func checkLater(in pause: Duration) {
    step = .waiting
    operation.wait(pause) { [unowned self] in rootDidEnd() }
  }

  private func didScan(_ left: RemainingProcesses) {
    if mustWait { return checkLater(in: Self.interval) }
    // A shell that was asked to end ends at once. The processes that it leaves behind have been
    // asked, too.
    if !left.isEmpty, handle.state == .terminating, !isKilled {
      return checkLater(in: Self.savingInterval)
    }
    if let worker = handle.worker, worker.external != nil { return endExternal(worker) }
    clear(others: left.others, tries: 1)
  }

  /// Handles the end of an external worker's root process: its other processes aren't ended, and it
  /// isn't reaped, since another program supervises it.
  private func endExternal(_ worker: WorkerUnit) {
    end()
    ends.externalRootDidEnd(worker)
    // Another process represents the worker now, and has an instance of its own.
    if worker.process != nil, worker.ending === self { worker.ending = nil }
  }

  // MARK: remaining processes

  private func clear(others: Int, tries: Int, escaped: Int = 0) {
    let mark = ends.launchPlanner.mark(of: id)
    let notify = handle.worker?.conversation?.notifyPath
    operation.begin(within: Self.timeout, orElse: nil) { done in
      processes.clear(process, of: id.name, mark: mark, notify: notify) { done($0) }
    } then: { [unowned self] (outcome: Clearing?) in
      didClear(outcome, others: others, tries: tries, escaped: escaped)
    }
  }

  /// - Parameter outcome: the outcome of the attempt; nil: it was lost.
  private func didClear(_ outcome: Clearing?, others: Int, tries: Int, escaped: Int) {
    let escaped = max(escaped, outcome?.escaped ?? 0)
    let failure = outcome.map(\.failure) ?? "can't look for its remaining processes"
    if let failure {
      handle.log(.warning, "can't kill all of its processes: \(failure)")
      // Without an outcome, a thread hangs, and so would another attempt.
      if outcome != nil, tries < Self.maxTries {
        let pause = Duration.seconds(Int64(1) << Int64(tries - 1))
        handle.log(.warning, "next attempt in \(pause.text)")
        return operation.wait(pause) { [unowned self] in
          clear(others: others, tries: tries + 1, escaped: escaped)
        }
      }
    }
    reap(others: others + escaped)
  }

  private func reap(others: Int) {
    if others > 0, ends.requests.isAlive(id), handle.state != .terminating {
      handle.log(
        .warning,
        "its first process has ended; its \(others) other processes are ended with "
          + "it; if the program puts itself into the background, use its option that prevents that")
    }
    let exit = processes.reap(process, of: id.name)
    let status = handle.worker.map { ends.kernelKills.status(exit, of: $0) } ?? ExitStatus(exit)
    if status == .outOfMemory, let worker = handle.worker {
      ends.kernelKills.keepReport(ofKernelKill: worker)
    }
    isReaped = true
    ends.restarts.record(leftBehind: others, by: id)
    removeGroup(status)
  }

  /// Removes the worker's cgroup. The worker has ended only when its cgroup can be used again.
  private func removeGroup(_ status: ExitStatus) {
    let lost: String? = "can't remove its cgroup within \(Self.timeout.text)"
    operation.begin(within: Self.timeout, orElse: lost) {
      processes.removeGroup(of: process, id.name, then: $0)
    } then: { [unowned self] (failure: String?) in
      if let failure { handle.log(.warning, failure) }
      readLastLines(status)
    }
  }

  private func readLastLines(_ status: ExitStatus) {
    operation.begin(within: Self.timeout, orElse: nil) {
      processes.readLastLines(of: process, id.name, then: $0)
    } then: { [unowned self] (lines: [String]?) in
      end()
      if let worker = handle.worker { ends.concludeRun(worker, status, lastLines: lines) }
    }
  }
}
