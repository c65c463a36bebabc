import Lifecycle
import Linux
import Policy
import Supervision

/// The functions that `WakeWatch` uses, for one run of a worker. Tests provide their own.
protocol WakeHost: AnyObject {
  /// The ports of the current configuration.
  var healthChecksWhileAsleep: [AsleepAnswer] { get }

  /// Its remaining operations, such as a hibernation, are done before work that no client waits for.
  func prioritize()
  func send(_ event: Event)
  func log(_ priority: DaemonLog.Priority, _ text: String)

  /// Nothing wakes it any more: other watches for its wake end, too.
  func watchHasEnded()
}

/// Wakes one run of a worker: while it sleeps, its inputs are watched in its place, and what comes is reported to the
/// engine, once. Belongs to the loop's thread; a new run has a new one.
final class WakeWatch {
  private let id: WorkerID
  private let watches: any DescriptorWatches
  private let host: any WakeHost
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
    _ id: WorkerID, watches: any DescriptorWatches, timers: any Timers, host: any WakeHost
  ) {
    self.id = id
    self.watches = watches
    self.host = host
    timer = WakeTimer(timers) { [id, unowned host] in host.send(.timerDue(id, $0)) }
    answerer = AsleepAnswerer(watches, timers) { [unowned host] in host.log(.warning, $0) }
  }

  /// Something is still watched or timed for it.
  var isActive: Bool { watched != nil || timer.due != nil || answeredCount != nil }

  /// Its inputs are watched.
  var isWatching: Bool { watched != nil }

  /// Health checks that were answered since it fell asleep; nil: none are.
  var answeredCount: Int? { answerer.count }

  /// The worker sleeps: from now on its inputs are watched here.
  func listen(at result: Result<some WakeInputs, SystemCallError>) {
    stop()
    if isOver { return }
    if let refusal = result.refusal { mayMissCalls(refusal) }
    guard case .success(let inputs) = result else { return }
    leftUnread = inputs.leftUnread
    if inputs.unwatched != unwatched, !inputs.unwatched.isEmpty {
      host.log(
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
    answerer.answer(at: inputs.answered, host.healthChecksWhileAsleep) { [weak self] why in
      self?.report(why)
    }
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
    host.log(.warning, found.sentence)
  }

  private func mayMissCalls(_ error: SystemCallError) {
    host.log(.warning, "may miss a wake: \(error)")
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
    host.prioritize()
    host.send(.wakeNeeded(id, why))
  }

  /// It couldn't be resumed: the input that had come still waits, and won't be reported again.
  func repeatCall() {
    if let why = unheardCall { host.send(.wakeNeeded(id, why)) }
  }

  /// The run has ended. A suspension that is still under way can't begin another watch.
  func end() {
    stop()
    isOver = true
  }

  /// It runs again, or its end has begun.
  func stop() {
    unheardCall = nil
    host.watchHasEnded()
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
