import Control
import Lifecycle
import Linux
import Policy

/// Decides whether and when a worker that has ended is started again (`restart:`), and records how
/// its runs ended. The rules are `Policy`'s (`RestartHistory`). This class has the timers, and
/// distinguishes the kinds of ends:
///
/// - The worker ended by itself, or a watchdog or a liveness probe ended it: it restarts as
///   `restart.when` says, after a back-off.
/// - It was terminated for lack of memory: it restarts when there is room, unless `restart.when` is
///   `no` or `on-failure`.
/// - It was ended for its footprint: it restarts at once.
/// - The operator stopped it, the daemon ends, or it is no longer declared: it stays stopped.
///
/// A termination for lack of memory is no failure: it doesn't count for `give_up`, and with
/// `on-failure` the worker stays stopped until it is started by request
/// (`RestartsAfterShortage.swift`). It belongs to the event loop's thread.
final class RestartSupervisor {
  let timers: any Timers
  /// Nanoseconds since 1970.
  private let wallClock: () -> Int64
  private let stoppedFile: String
  private let files: any StateFileWriter
  /// The workers with `restart.when: unless-stopped` that the operator has stopped, for the
  /// daemon's next start. They are saved in a file, a name on each line.
  private var stopped: Set<String>
  let phase: DaemonPhase
  let driver: EngineDriver
  let workers: WorkerRegistry
  let log: DaemonLog
  /// Starts workers. It reads what is recorded here, so the reference is weak.
  private weak var starter: DependencyStarter?
  /// The runs of each worker. Only this class changes them.
  var histories: [WorkerID: RunHistory] = [:]
  /// The timer of the next check whether there is room for waiting workers.
  let roomCheck: TimedOperation

  /// Reads the file of stopped workers, so it may wait for the disk.
  init(
    timers: any Timers, wallClock: @escaping () -> Int64 = { Clocks.realtime },
    stoppedFile: String, files: any StateFileWriter, phase: DaemonPhase, driver: EngineDriver,
    workers: WorkerRegistry, log: DaemonLog
  ) {
    self.timers = timers
    roomCheck = TimedOperation(timers)
    self.wallClock = wallClock
    self.stoppedFile = stoppedFile
    self.files = files
    // If the file is missing or can't be read, no worker counts as stopped and all workers start.
    let names = ((try? readText(stoppedFile)) ?? "").split(separator: "\n")
    stopped = Set(names.map(String.init))
    self.phase = phase
    self.driver = driver
    self.workers = workers
    self.log = log
  }

  /// Sets the starter, before the first restart. It isn't retained.
  func connect(_ starter: DependencyStarter) { self.starter = starter }

  // MARK: workers

  /// Adds a worker, or replaces one of the same name.
  ///
  /// - Parameter exits: the ends of its earlier runs, the latest last.
  func add(_ id: WorkerID, exits: [ExitRecord]) {
    remove(id)
    histories[id] = RunHistory(exits: exits)
  }

  /// Removes a worker.
  func remove(_ id: WorkerID) {
    cancel(id)
    stays(id)
    histories[id] = nil
  }

  /// Cancels all plans for a worker that is no longer declared.
  func forgetPlans(of id: WorkerID) {
    cancel(id)
    setStopped(id, false)
  }

  /// Applies a configuration that was read again.
  func didChangeTerms(of id: WorkerID) {
    guard let condition = workers[id]?.configuration.restart.condition else { return }
    if condition == .never { cancel(id) }
    if condition != .unlessStopped { setStopped(id, false) }
  }

  // MARK: runs

  /// Records a worker's transition. Call it at each.
  func record(_ transition: Transition) {
    let id = transition.worker
    guard histories[id] != nil else { return }
    switch transition.to {
    case .launching:
      cancel(id)
      histories[id]?.begin(at: timers.now)
    case .terminated where transition.from != .terminated:
      ended(id, transition.cause)
      answerWatchers(of: id, transition.cause)
    // If the transition isn't for a stop, the request to stop has failed or another request has
    // replaced it.
    case .resuming, .foreground, .background, .suspended, .hibernated:
      histories[id]?.isToStop = transition.cause.isStop
      histories[id]?.hasBeenReady = true
    default: break
    }
  }

  /// Records the end of a run that ended while no daemon ran.
  func record(_ exit: ExitRecord, of id: WorkerID) { histories[id]?.record(exit) }

  /// Records how many processes still ran when the first process of the run had ended.
  func record(leftBehind count: Int, by id: WorkerID) { histories[id]?.leftBehind = count }

  /// Records facts about the run whose end is recorded next.
  func record(footprint: ByteCount, lastLine: String?, of id: WorkerID) {
    histories[id]?.footprint = footprint
    histories[id]?.lastLine = lastLine
  }

  /// Records why the worker isn't started, as a clause.
  func record(problem: String, of id: WorkerID) {
    histories[id]?.problem = CodedText("not_started", problem)
  }

  private func ended(_ id: WorkerID, _ cause: Cause) {
    var status = driver.state.snapshot(of: id)?.lastExit
    if case .failed = cause { status = nil }
    histories[id]?.end(cause, status, at: wallClock() / 1_000_000_000)
    // No restart follows if the worker has been started again already, was ended by request, or
    // ends with the daemon. Another supervisor starts a worker that was adopted.
    guard driver.state.state(of: id) == .terminated, !phase.isClosing,
      histories[id]?.isToStop != true, let worker = workers[id], worker.external == nil
    else { return }
    let rules = worker.configuration.restart
    let ran = timers.now - launchedAt(of: id)
    switch cause {
    case .requested, .released, .adopted, .added: break
    // This end is wanted whatever `restart.when` says, and is no failure. The engine has its own
    // back-off.
    case .footprint: restart(id, after: .zero, cause.sentence)
    case .pressure: endedForMemory(id, ran: ran, rules: rules, reason: cause.sentence)
    default:
      let decision = histories[id]?.rules.ended(
        succeeded: status == .exited(0), ran: ran, rules: rules, at: timers.now)
      act(on: decision ?? .stay, id, cause.sentence)
    }
  }

  private func act(on decision: RestartHistory.Decision, _ id: WorkerID, _ reason: String) {
    switch decision {
    case .stay: break
    case .restart(let delay): restart(id, after: delay, reason)
    case .giveUp(let restarts, let window):
      let text =
        "gave up after \(restarts) restart\(restarts == 1 ? "" : "s") within \(window.text): "
        + "\(reason); "
        + "start it with `dormouse start \(id)`"
      histories[id]?.problem = CodedText("gave_up", text)
      log(.error, "\(id): \(text)")
    }
  }

  // MARK: restarts

  func restart(
    _ id: WorkerID, after delay: Duration, _ reason: String, forMemory: Bool = false
  ) {
    cancel(id)
    let moment = timers.now + delay
    histories[id]?.plan = .backingOff(until: moment, reason: reason)
    histories[id]?.timer = timers.at(moment) { [unowned self] in
      restartIsDue(id, reason, forMemory: forMemory)
    }
    log(.notice, "\(id): restarts in \(delay.text): \(reason)")
  }

  private func restartIsDue(_ id: WorkerID, _ reason: String, forMemory: Bool) {
    histories[id]?.timer = nil
    histories[id]?.plan = nil
    if phase.isClosing { return }
    if forMemory, driver.state.room(for: expectedFootprint(of: id)) != .enough {
      return waitForRoom(id, reason)
    }
    histories[id]?.restarts += 1
    starter?.start(id, .restart, occasion: .restart) { [log] answer in
      if answer.code != .done { log(.error, answer.text) }
    }
  }

  private func cancel(_ id: WorkerID) {
    if let timer = histories[id]?.timer { timers.cancel(timer) }
    histories[id]?.timer = nil
    histories[id]?.plan = nil
    endRoomChecks()
  }

  /// Handles an operator's request, which resets the history: a stop is no failure, and a start
  /// clears the back-off.
  func operatorRequested(_ verb: Request.Verb, _ id: WorkerID) {
    guard histories[id] != nil else { return }
    switch verb {
    case .start, .restart:
      cancel(id)
      histories[id]?.isToStop = false
      histories[id]?.rules.reset()
      histories[id]?.restarts = 0
      histories[id]?.memoryStreak = 0
      setStopped(id, false)
    case .stop, .terminate:
      cancel(id)
      histories[id]?.isToStop = true
      histories[id]?.problem = nil
      if workers[id]?.configuration.restart.condition == .unlessStopped { setStopped(id, true) }
    default: break
    }
  }

  func isStopped(_ id: WorkerID) -> Bool { stopped.contains(id.name) }

  /// Records whether the operator has stopped a worker.
  func setStopped(_ id: WorkerID, _ isStopped: Bool) {
    guard self.isStopped(id) != isStopped else { return }
    if isStopped { stopped.insert(id.name) } else { stopped.remove(id.name) }
    let text = stopped.sorted().map { $0 + "\n" }.joined()
    files.replace(stoppedFile, with: text) { [log] failure in
      if let failure { log(.warning, "\(id): can't record that it was stopped: \(failure)") }
    }
  }

  // MARK: watchers of a start

  /// Watches whether a started worker keeps running. `watcher` is called once: with the end of the
  /// run, or with nil when `stays` is called.
  ///
  /// - Returns: whether there was no other watcher.
  func watch(_ id: WorkerID, then watcher: @escaping (Answer?) -> Void) -> Bool {
    guard let history = histories[id] else {
      watcher(nil)
      return false
    }
    histories[id]?.watchers.append(watcher)
    return history.watchers.isEmpty
  }

  func isWatched(_ id: WorkerID) -> Bool { histories[id]?.watchers.isEmpty == false }

  /// Reports to the watchers that the worker keeps running.
  func stays(_ id: WorkerID) { answerWatchers(of: id, with: nil) }

  private func answerWatchers(of id: WorkerID, with end: Answer?) {
    let watchers = histories[id]?.watchers ?? []
    histories[id]?.watchers = []
    for watcher in watchers { watcher(end) }
  }

  /// Reports to the watchers that the worker has ended shortly after its launch.
  private func answerWatchers(of id: WorkerID, _ cause: Cause) {
    guard let history = histories[id], !history.watchers.isEmpty else { return }
    let ran = (timers.now - history.launchedAt).text
    if cause == .exited(.exited(0)), history.leftBehind == 0 {
      return answerWatchers(
        of: id, with: Answer(.done, "\(id) has already ended: exited with status 0 after \(ran)"))
    }
    var text = "\(id) ended \(ran) after its launch: \(cause.sentence)"
    if history.leftBehind > 0 {
      text +=
        ", and its other processes were ended with it; if the program puts itself into the "
        + "background, use its option that prevents that"
    }
    if case .backingOff(let due, _) = history.plan {
      text += "; it restarts in \((due - timers.now).text)"
    }
    answerWatchers(of: id, with: Answer(.failed, text + lastOutput(of: id)))
  }
}
