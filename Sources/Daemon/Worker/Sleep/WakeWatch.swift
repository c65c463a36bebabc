import Lifecycle
import Linux
import Policy
import Supervision

/// The inputs of a sleeping worker, as they are watched in its place. `WakeSources` has real ones; tests
/// provide their own.
protocol WakeInputs: AnyObject, Sendable {
  /// Readable when `nextReason` may return something.
  var descriptor: Descriptor { get }
  /// Input that had come by the time the worker slept, and that it hadn't read; it should be woken at once.
  var waiting: String? { get }
  /// All of that, for the next time that it falls asleep.
  var leftUnread: LeftUnread { get }
  /// Inputs that can't be watched; the worker could miss a request there.
  var refusals: [SystemCallError] { get }
  /// Not watched here: the daemon answers health checks there.
  var answered: [AsleepListener] { get }
  /// Waits of the worker that can't be watched, as clauses.
  var unwatched: [String] { get }
  /// A client can give it work.
  var hasClients: Bool { get }

  /// The input that has come since the last time; nil: none.
  func nextReason() -> String?

  /// The worker is about to run, or runs: files that were opened in its place are passed on to it.
  func admitOpened()
}

extension WakeSources: WakeInputs {}

extension Result where Success == any WakeInputs, Failure == SystemCallError {
  /// The first input that can't be watched; better one that could be in a moment.
  var refusal: SystemCallError? {
    switch self {
    case .success(let inputs): inputs.refusals.first(where: \.isShortage) ?? inputs.refusals.first
    case .failure(let error): error
    }
  }
}

/// Wakes one run of a worker: while it sleeps, its inputs are watched in its place, and what comes is reported to the
/// engine, once. Belongs to the loop's thread; a new run has a new one.
final class WakeWatch {
  private let id: WorkerID
  private weak var worker: WorkerUnit?
  private let watches: any DescriptorWatches
  private let driver: EngineDriver
  private let memory: any WorkerMemory
  private let daemonLog: DaemonLog
  /// Wakes it for its own timers.
  let timer: WakeTimer
  private let answerer: AsleepAnswerer
  private var watched: (inputs: any WakeInputs, token: EventLoop.Token)?
  /// The cause of its wake, until it runs.
  private var unheardCall: String?
  /// When it last fell asleep.
  private(set) var leftUnread = LeftUnread()
  /// Its waits when it last fell asleep that can't wake it.
  private(set) var unwatched: [String] = []
  /// While it sleeps: its own work that nothing wakes it for; nil: none is known.
  private(set) var stoppedWork: StoppedWork?
  private var hasLoggedStop = false
  /// The run has ended: nothing is watched any more.
  private(set) var isOver = false

  init(
    of worker: WorkerUnit, watches: any DescriptorWatches, timers: any Timers,
    driver: EngineDriver, memory: any WorkerMemory, log: DaemonLog
  ) {
    let id = worker.id
    self.id = id
    self.worker = worker
    self.watches = watches
    self.driver = driver
    self.memory = memory
    daemonLog = log
    timer = WakeTimer(timers) { [driver] in driver.send(.timerDue(id, $0)) }
    answerer = AsleepAnswerer(watches, timers) { log(.warning, "\(id): \($0)") }
  }

  private func log(_ priority: DaemonLog.Priority, _ text: String) {
    daemonLog(priority, "\(id): \(text)")
  }

  /// Something is still watched or timed for it.
  var isActive: Bool { watched != nil || timer.due != nil || answeredCount != nil }

  /// Its inputs are watched.
  var isWatching: Bool { watched != nil }

  /// Health checks that were answered since it fell asleep; nil: none are.
  var answeredCount: Int? { answerer.count }

  /// The worker sleeps: from now on its inputs are watched here.
  func listen(at result: Result<any WakeInputs, SystemCallError>) {
    stop()
    if isOver { return }
    if let refusal = result.refusal { mayMissCalls(refusal) }
    guard case .success(let inputs) = result else { return }
    leftUnread = inputs.leftUnread
    if inputs.unwatched != unwatched, !inputs.unwatched.isEmpty {
      log(
        .notice,
        "while it sleeps, these don't wake it: \(inputs.unwatched.joined(separator: ", ")) "
          + "(the daemon can't watch them)")
    }
    unwatched = inputs.unwatched
    do throws(SystemCallError) {
      let token = try watches.whenReadable(inputs.descriptor) { [weak self, weak inputs] in
        if let why = inputs?.nextReason() { self?.wake(why) }
      }
      watched = (inputs, token)
    } catch { return mayMissCalls(error) }
    let checks = worker?.configuration.healthChecksWhileAsleep ?? []
    answerer.answer(at: inputs.answered, checks) { [weak self] in self?.report($0) }
  }

  /// It has fallen asleep, and `timer` has been set.
  ///
  /// - Parameters:
  ///   - times: its timers; empty if it has clients.
  ///   - isWriting: it wrote regularly until now.
  func noteStoppedWork(_ times: [DueTime], isWriting: Bool) {
    guard watched != nil, timer.due == nil else { return }
    guard let found = StoppedTimer(times).map(StoppedWork.timer) ?? (isWriting ? .writing : nil)
    else { return }
    stoppedWork = found
    if hasLoggedStop { return }
    hasLoggedStop = true
    log(.warning, found.sentence)
  }

  private func mayMissCalls(_ error: SystemCallError) {
    log(.warning, "may miss a wake: \(error)")
  }

  /// The engine knows that it sleeps: wakes it for input that came too late for it to read.
  func wakeForWhatWaits() {
    if let why = watched?.inputs.waiting { wake(why) }
  }

  private func wake(_ why: String) {
    watched?.inputs.admitOpened()
    report(why)
  }

  private func report(_ why: String) {
    unheardCall = why
    memory.prioritize(id.name)
    driver.send(.wakeNeeded(id, why))
  }

  /// It couldn't be resumed: the input that had come still waits, and won't be reported again.
  func repeatCall() {
    if let why = unheardCall { driver.send(.wakeNeeded(id, why)) }
  }

  /// The run has ended. A suspension that is still under way can't begin another watch.
  func end() {
    stop()
    isOver = true
  }

  /// It runs again, or its end has begun.
  func stop() {
    unheardCall = nil
    worker?.managerWatch = nil
    timer.cancel()
    stoppedWork = nil
    answerer.stop()
    guard let (inputs, token) = watched else { return }
    watches.unwatch(inputs.descriptor, token)
    inputs.admitOpened()
    watched = nil
  }
}

/// Work of a worker's own that doesn't go on while it sleeps, and that nothing wakes it for.
enum StoppedWork: Hashable, Sendable {
  /// It has no clients.
  case timer(StoppedTimer)
  /// It wrote regularly until it was put to sleep.
  case writing

  var code: String {
    switch self {
    case .timer: "own_timer_stopped"
    case .writing: "writing_stopped"
    }
  }

  /// For the log and as the first sentence of `explain`.
  var sentence: String {
    switch self {
    case .timer(let timer):
      "its own timer (\(timer.repeats ? "every" : "due in") \(timer.interval.spoken)) doesn't run "
        + "while it sleeps, and it has no clients: it does nothing until it is woken; "
        + "`background: { wake_for_timers: \(max(1, timer.interval.components.seconds))s }` wakes it for the timer, "
        + "and `background: { suspend_after: never }` keeps it awake"
    case .writing:
      "it wrote regularly until it was put to sleep, and writes nothing until it is woken; "
        + "`background: { suspend_after: never }` keeps it awake"
    }
  }
}

/// The timer that wakes one run of a worker for its own timers while it sleeps. `TimerWake` decides which of
/// them count. Belongs to the loop's thread.
final class WakeTimer {
  private let timers: any Timers
  /// Called with the reason, when the time has come.
  private let ring: (String) -> Void
  private var alarm: (at: Instant, token: EventLoop.Token)?
  /// When one of its timers woke it the last time.
  private var lastRang: Instant?

  init(_ timers: any Timers, ring: @escaping (String) -> Void) {
    self.timers = timers
    self.ring = ring
  }

  /// When it will be woken; nil: no timer of its own wakes it.
  var due: Instant? { alarm?.at }

  /// It has just fallen asleep. An earlier time isn't valid any more.
  ///
  /// - Parameters:
  ///   - times: its timers and time-outs.
  ///   - shortest: `background.wake_for_timers`; nil: it is woken for none.
  func set(_ times: [DueTime], shortest: Duration?) {
    cancel()
    guard let shortest else { return }
    let now = timers.now
    guard
      let wake = TimerWake.first(
        of: times, shortest: shortest, sinceLast: lastRang.map { now - $0 })
    else { return }
    set(at: now + wake.delay, wake.why)
  }

  /// - Parameter instant: if it has passed, the timer fires in the loop's next turn.
  func set(at instant: Instant, _ why: String) {
    cancel()
    let token = timers.at(instant) { [weak self] in
      guard let self else { return }
      alarm = nil
      lastRang = timers.now
      ring(why)
    }
    alarm = (instant, token)
  }

  /// It runs again, or has ended.
  func cancel() {
    guard let alarm else { return }
    timers.cancel(alarm.token)
    self.alarm = nil
  }
}
