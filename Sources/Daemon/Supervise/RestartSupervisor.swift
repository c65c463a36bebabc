import Lifecycle
import Linux
import Policy

/// What the configuration says of a worker's restarts.
struct RestartTerms: Hashable {
  var rules: RestartRules
  var importance = 0
  /// Another supervisor starts it (`adopt`).
  var isExternal = false
}

/// `restart:`. Whether and when a worker that has ended is started again, and how its runs ended. The rules
/// are `Policy`'s (`RestartHistory`); here are the timers, and what distinguishes one end from another:
///
///     it ended by itself, or a watchdog or a probe of liveness ended it   by `restart.when`, after a back-off
///     it was terminated for memory     if not `no` or `on-failure`: when there is room again
///     it was ended for its footprint   at once
///     a person stopped it, the daemon ends, it is no longer declared      stays
///
/// A termination for memory is no failure: it counts towards no `give_up`, and `on-failure` leaves the
/// worker until it is started by request (`RestartsAfterShortage.swift`). Belongs to the loop's thread.
final class RestartSupervisor {
  let timers: any Timers
  /// Nanoseconds since 1970.
  private let wallClock: () -> Int64
  private let stopped: StoppedByPerson
  private let phase: DaemonPhase
  let driver: EngineDriver
  private let workers: WorkerRegistry
  let log: DaemonLog
  /// What starts workers asks this for what is known of them.
  private weak var starter: DependencyStarter?
  var histories: [WorkerID: RunHistory] = [:]
  /// When workers that wait for room are looked at again.
  var roomCheck: EventLoop.Token?

  init(
    timers: any Timers, wallClock: @escaping () -> Int64 = { Clocks.realtime },
    stopped: StoppedByPerson, phase: DaemonPhase, driver: EngineDriver, workers: WorkerRegistry,
    log: DaemonLog
  ) {
    self.timers = timers
    self.wallClock = wallClock
    self.stopped = stopped
    self.phase = phase
    self.driver = driver
    self.workers = workers
    self.log = log
  }

  /// Before the first restart. It isn't kept alive.
  func connect(_ starter: DependencyStarter) { self.starter = starter }

  // MARK: what there is

  /// There is a worker of that name now, or another one than before.
  ///
  /// - Parameter exits: of earlier runs, the latest last.
  func add(_ id: WorkerID, exits: [ExitRecord]) {
    remove(id)
    histories[id] = RunHistory(exits: exits)
  }

  /// There is none of that name any more.
  func remove(_ id: WorkerID) {
    cancel(id)
    stays(id)
    histories[id] = nil
  }

  /// It is no longer declared: nothing of what was planned for it happens.
  func forgetPlans(of id: WorkerID) {
    cancel(id)
    setStopped(id, false)
  }

  /// nil: there is no such worker.
  func terms(of id: WorkerID) -> RestartTerms? {
    workers[id].map {
      RestartTerms(
        rules: $0.configuration.restart, importance: $0.configuration.importance,
        isExternal: $0.external != nil)
    }
  }

  /// The configuration was read again.
  func termsChanged(of id: WorkerID) {
    guard let condition = terms(of: id)?.rules.condition else { return }
    if condition == .never { cancel(id) }
    if condition != .unlessStopped { setStopped(id, false) }
  }

  // MARK: runs

  /// At each of a worker's transitions.
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
    // If not for a stop: the request to stop it has failed, or another one has replaced it.
    case .resuming, .foreground, .background, .suspended, .hibernated:
      histories[id]?.isToStop = transition.cause.isStop
      histories[id]?.hasBeenReady = true
    default: break
    }
  }

  /// A run that no daemon saw the end of.
  func record(_ exit: ExitRecord, of id: WorkerID) { histories[id]?.record(exit) }

  /// How many processes ran when the first one of the run had ended.
  func record(leftBehind count: Int, by id: WorkerID) { histories[id]?.leftBehind = count }

  /// Of the run whose end is noted next.
  func record(footprint: ByteCount, lastWords: String?, of id: WorkerID) {
    histories[id]?.footprint = footprint
    histories[id]?.lastWords = lastWords
  }

  /// Why it isn't started; a clause.
  func record(problem: String, of id: WorkerID) {
    histories[id]?.problem = problem
    histories[id]?.hasGivenUp = false
  }

  private func ended(_ id: WorkerID, _ cause: Cause) {
    var status = driver.state.snapshot(of: id)?.lastExit
    if case .failed = cause { status = nil }
    histories[id]?.end(cause, status, at: wallClock() / 1_000_000_000)
    // Started again already, or ended with the daemon, or by request.
    guard driver.state.state(of: id) == .terminated, !phase.isClosing,
      histories[id]?.isToStop != true, let terms = terms(of: id), !terms.isExternal
    else { return }
    let ran = timers.now - launchedAt(of: id)
    switch cause {
    case .requested, .released, .adopted, .added: break
    // Wanted whatever `restart.when` is, and no failure. The engine has its own back-off.
    case .footprint: restart(id, after: .zero, cause.sentence)
    case .pressure: endedForMemory(id, ran: ran, rules: terms.rules, why: cause.sentence)
    default:
      let decision = histories[id]?.rules.ended(
        succeeded: status == .exited(0), ran: ran, rules: terms.rules, at: timers.now)
      act(on: decision ?? .stay, id, cause.sentence)
    }
  }

  private func act(on decision: RestartHistory.Decision, _ id: WorkerID, _ why: String) {
    switch decision {
    case .stay: break
    case .restart(let delay): restart(id, after: delay, why)
    case .giveUp(let restarts, let window):
      let text =
        "gave up after \(restarts) restart\(restarts == 1 ? "" : "s") within \(window.spoken): "
        + "\(why); "
        + "start it with `dormouse start \(id)`"
      histories[id]?.problem = text
      histories[id]?.hasGivenUp = true
      log(.error, "\(id): \(text)")
    }
  }

  // MARK: restarts

  func restart(
    _ id: WorkerID, after delay: Duration, _ why: String, forMemory: Bool = false
  ) {
    cancel(id)
    let moment = timers.now + delay
    histories[id]?.plan = .backingOff(until: moment, why: why)
    histories[id]?.timer = timers.at(moment) { [unowned self] in
      restartIsDue(id, why, forMemory: forMemory)
    }
    log(.notice, "\(id): restarts in \(delay.spoken): \(why)")
  }

  private func restartIsDue(_ id: WorkerID, _ why: String, forMemory: Bool) {
    histories[id]?.timer = nil
    histories[id]?.plan = nil
    if phase.isClosing { return }
    if forMemory, driver.state.room(for: expectedFootprint(of: id)) != .enough {
      return waitForRoom(id, why)
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

  /// A person's word counts more than what has been: a stop is no failure, and a start begins as if there
  /// had been no restarts.
  func personAsks(_ verb: Request.Verb, _ id: WorkerID) {
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
      histories[id]?.hasGivenUp = false
      if terms(of: id)?.rules.condition == .unlessStopped { setStopped(id, true) }
    default: break
    }
  }

  private func setStopped(_ id: WorkerID, _ isStopped: Bool) {
    stopped.set(id, isStopped) { [log] in log(.warning, $0) }
  }

  // MARK: whether a started worker stays

  /// Calls back once: with the end of the run, or with nil when `stays` is called.
  ///
  /// - Returns: whether there were no other watchers.
  func watch(_ id: WorkerID, then watcher: @escaping (Answer?) -> Void) -> Bool {
    guard let history = histories[id] else {
      watcher(nil)
      return false
    }
    histories[id]?.watchers.append(watcher)
    return history.watchers.isEmpty
  }

  func isWatched(_ id: WorkerID) -> Bool { histories[id]?.watchers.isEmpty == false }

  /// The worker runs, and will keep running.
  func stays(_ id: WorkerID) { answerWatchers(of: id, with: nil) }

  private func answerWatchers(of id: WorkerID, with end: Answer?) {
    let watchers = histories[id]?.watchers ?? []
    histories[id]?.watchers = []
    for watcher in watchers { watcher(end) }
  }

  /// It has ended within its first moments.
  private func answerWatchers(of id: WorkerID, _ cause: Cause) {
    guard let history = histories[id], !history.watchers.isEmpty else { return }
    let ran = (timers.now - history.launchedAt).spoken
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
      text += "; it restarts in \((due - timers.now).spoken)"
    }
    answerWatchers(of: id, with: Answer(.failed, text + lastWords(of: id)))
  }
}
