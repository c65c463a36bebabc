import Lifecycle
import Linux
import Policy
import Supervision

/// The inputs of a sleeping worker, which the daemon watches for it. `WakeSources` has real ones;
/// tests have fakes.
protocol WakeInputs: AnyObject, Sendable {
  /// Readable when `nextReason` may return something.
  var descriptor: Descriptor { get }
  /// Input that had arrived before the worker slept, and that it hadn't read. The worker should be
  /// woken at once.
  var waiting: String? { get }
  /// All input that had arrived unread, for the next time that the worker falls asleep.
  var unreadBaseline: UnreadInputBaseline { get }
  /// Inputs that can't be watched. The worker could miss a request there.
  var refusals: [SystemCallError] { get }
  /// Ports at which the daemon answers health checks. They aren't watched here.
  var answered: [AsleepListener] { get }
  /// Things that the worker waits for and that can't be watched, as clauses.
  var unwatched: [String] { get }
  /// A client can give the worker work.
  var hasClients: Bool { get }

  /// Returns the input that has arrived since the last call; nil: none.
  func nextReason() -> String?

  /// Keeps the files that were opened for the worker, which is going to be woken.
  func keepOpened()
  /// Passes on to the worker the files that were opened for it. The worker is about to run, or
  /// runs.
  func handOverOpened()
}

extension WakeSources: WakeInputs {}

extension Result where Success == any WakeInputs, Failure == SystemCallError {
  /// The first input that can't be watched. A shortage that may end soon is preferred.
  var refusal: SystemCallError? {
    switch self {
    case .success(let inputs): inputs.refusals.first(where: \.isShortage) ?? inputs.refusals.first
    case .failure(let error): error
    }
  }

  /// No other process gives the worker work. False if that isn't known.
  var hasNoClients: Bool {
    if case .success(let inputs) = self { !inputs.hasClients } else { false }
  }
}

/// Wakes one run of a worker. While the worker sleeps, this watches its inputs, and reports an
/// arrival to the engine, once. Belongs to the loop's thread; each run has its own instance.
final class WakeWatch {
  private let handle: WorkerHandle
  private let sleeps: WorkerSleeps
  /// Wakes the worker for its own timers.
  let timer: WakeTimer
  private let answerer: HealthCheckResponder
  private var watched: (inputs: any WakeInputs, token: EventLoop.Token)?
  /// The cause of the worker's wake, until it runs.
  private var pendingReason: String?
  /// The unread input when the worker last fell asleep.
  private(set) var unreadBaseline = UnreadInputBaseline()
  /// What the worker waited for when it last fell asleep and that can't wake it.
  private(set) var unwatched: [String] = []
  /// The signals that the worker leaves pending: they were the last two times that it fell asleep.
  /// They don't wake it.
  private(set) var leftPending: UInt64 = 0
  /// The blocked signals that were pending before and after its last stop.
  private var pendingAtStop: UInt64 = 0
  /// While the worker sleeps: its own work that nothing wakes it for; nil: none is known.
  private(set) var stoppedWork: StoppedWork?
  private var hasLoggedStop = false
  /// The run has ended: nothing is watched any more.
  private(set) var isOver = false

  init(of worker: WorkerUnit, _ sleeps: WorkerSleeps) {
    let handle = WorkerHandle(worker: worker, driver: sleeps.driver, log: sleeps.log)
    self.handle = handle
    self.sleeps = sleeps
    timer = WakeTimer(sleeps.timers) { handle.send(.timerDue(handle.id, $0)) }
    answerer = HealthCheckResponder(sleeps.watches, sleeps.timers) { handle.log(.warning, $0) }
  }

  /// The worker's inputs are watched.
  var isWatching: Bool { watched != nil }

  /// The number of health checks that were answered since the worker fell asleep; nil: none are
  /// answered.
  var answeredCount: Int? { answerer.count }

  /// Begins to watch the worker's inputs: it sleeps.
  func listen(at result: Result<any WakeInputs, SystemCallError>) {
    stop()
    if isOver { return }
    if let refusal = result.refusal { warnOfMissedWake(refusal) }
    guard case .success(let inputs) = result else { return }
    unreadBaseline = inputs.unreadBaseline
    if inputs.unwatched != unwatched, !inputs.unwatched.isEmpty {
      handle.log(
        .notice,
        "while it sleeps, these don't wake it: \(inputs.unwatched.joined(separator: ", ")) "
          + "(the daemon can't watch them)")
    }
    unwatched = inputs.unwatched
    do throws(SystemCallError) {
      let token = try sleeps.watches.whenReadable(inputs.descriptor) { [weak self, weak inputs] in
        if let reason = inputs?.nextReason() { self?.wake(reason) }
      }
      watched = (inputs, token)
    } catch { return warnOfMissedWake(error) }
    let checks = handle.worker?.configuration.healthChecksWhileAsleep ?? []
    answerer.answer(at: inputs.answered, checks) { [weak self] in self?.report($0) }
  }

  /// Records the blocked signals that were pending before and after a stop. They wake the worker
  /// once, because it may have been too busy to read them.
  func recordPending(_ signals: UInt64) {
    leftPending = signals & pendingAtStop
    pendingAtStop = signals
  }

  /// Records the work that stopped with the sleep. Called when the worker has fallen asleep and
  /// `timer` has been set.
  ///
  /// - Parameters:
  ///   - times: the worker's timers; empty if it has clients.
  ///   - isWriting: the worker wrote regularly until now.
  func recordStoppedWork(_ times: [DueTime], isWriting: Bool) {
    guard watched != nil, timer.due == nil else { return }
    guard let work = StoppedTimer(times).map(StoppedWork.timer) ?? (isWriting ? .writing : nil)
    else { return }
    stoppedWork = work
    if hasLoggedStop { return }
    hasLoggedStop = true
    handle.log(.warning, work.sentence)
  }

  private func warnOfMissedWake(_ error: SystemCallError) {
    handle.log(.warning, "may miss a wake: \(error)")
  }

  /// Wakes the worker if input arrived too late for it to read. The engine knows that it sleeps.
  func wakeForWaitingInput() {
    if let reason = watched?.inputs.waiting { wake(reason) }
  }

  private func wake(_ reason: String) {
    watched?.inputs.keepOpened()
    report(reason)
  }

  private func report(_ reason: String) {
    pendingReason = reason
    sleeps.memory.prioritize(handle.id.name)
    handle.send(.wakeNeeded(handle.id, reason))
  }

  /// Reports the cause of the wake again: the worker couldn't be resumed, and the input wouldn't be
  /// reported again.
  func repeatWake() {
    if let reason = pendingReason { handle.send(.wakeNeeded(handle.id, reason)) }
  }

  /// Ends the watch with the run. A suspension that is still in progress can't begin another watch.
  func end() {
    stop()
    isOver = true
  }

  /// Ends the watch: the worker runs again, or its end has begun.
  func stop() {
    pendingReason = nil
    handle.worker?.managerWatch = nil
    timer.cancel()
    stoppedWork = nil
    answerer.stop()
    guard let (inputs, token) = watched else { return }
    sleeps.watches.unwatch(inputs.descriptor, token)
    inputs.handOverOpened()
    watched = nil
  }
}

/// Wakes one run of a worker for its own timers while it sleeps. `TimerWake` decides which of them
/// count. Belongs to the loop's thread.
final class WakeTimer {
  private let timers: any Timers
  /// Called with the reason when the timer fires.
  private let fire: (String) -> Void
  private var alarm: (at: Instant, token: EventLoop.Token)?
  /// When one of the worker's timers woke it the last time.
  private var lastFired: Instant?

  init(_ timers: any Timers, fire: @escaping (String) -> Void) {
    self.timers = timers
    self.fire = fire
  }

  /// When the worker will be woken; nil: none of its own timers wakes it.
  var due: Instant? { alarm?.at }

  /// Sets the timer: the worker has just fallen asleep. An earlier time isn't valid any more.
  ///
  /// - Parameters:
  ///   - times: the worker's timers and timeouts.
  ///   - shortest: the value of `background.wake_for_timers`; nil: no timer wakes the worker.
  func set(_ times: [DueTime], shortest: Duration?) {
    cancel()
    guard let shortest else { return }
    let now = timers.now
    guard
      let wake = TimerWake.first(
        of: times, shortest: shortest, sinceLast: lastFired.map { now - $0 })
    else { return }
    set(at: now + wake.delay, wake.reason)
  }

  /// - Parameter instant: if it has passed, the timer fires in the loop's next turn.
  func set(at instant: Instant, _ reason: String) {
    cancel()
    let token = timers.at(instant) { [weak self] in
      guard let self else { return }
      alarm = nil
      lastFired = timers.now
      fire(reason)
    }
    alarm = (instant, token)
  }

  /// Cancels the timer: the worker runs again, or has ended.
  func cancel() {
    guard let alarm else { return }
    timers.cancel(alarm.token)
    self.alarm = nil
  }
}

/// A worker's own work that stops while it sleeps, and that nothing wakes it for.
enum StoppedWork: Hashable, Sendable {
  /// The worker's own timer. It has no clients.
  case timer(StoppedTimer)
  /// The worker wrote regularly until it was suspended.
  case writing

  var code: String {
    switch self {
    case .timer: "own_timer_stopped"
    case .writing: "writing_stopped"
    }
  }

  /// The text for the log, and the first sentence of `explain`.
  var sentence: String {
    switch self {
    case .timer(let timer):
      "its own timer (\(timer.repeats ? "every" : "due in") \(timer.interval.text)) doesn't run "
        + "while it sleeps, and it has no clients: it does nothing until it is woken; "
        + "`background: { wake_for_timers: \(max(1, timer.interval.components.seconds))s }` "
        + "wakes it for the timer, and `background: { suspend_after: never }` keeps it awake"
    case .writing:
      "it wrote regularly until it was put to sleep, and writes nothing until it is woken; "
        + "`background: { suspend_after: never }` keeps it awake"
    }
  }
}
