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
  private(set) var stoppedTimer: StoppedTimer?
  private var hasLoggedTimer = false
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

  /// It has no clients, and has fallen asleep with these timers. `timer` has been set.
  func noteTimers(_ times: [DueTime]) {
    guard watched != nil, timer.due == nil, let found = StoppedTimer(times) else { return }
    stoppedTimer = found
    if hasLoggedTimer { return }
    hasLoggedTimer = true
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
    stoppedTimer = nil
    answerer.stop()
    guard let (inputs, token) = watched else { return }
    watches.unwatch(inputs.descriptor, token)
    inputs.admitOpened()
    watched = nil
  }
}

extension StoppedTimer {
  private var name: String {
    "its own timer (\(repeats ? "every" : "due in") \(interval.spoken))"
  }

  /// For a list of what doesn't wake the worker.
  var clause: String { "\(name): background.wake_for_timers of at most \(interval.spoken) would" }

  var sentence: String {
    "\(name) doesn't run while it sleeps, and it has no clients: it does nothing until it is woken"
      + "; background.wake_for_timers of at most \(interval.spoken) wakes it, and "
      + "background.suspend_after: never keeps it awake"
  }
}
