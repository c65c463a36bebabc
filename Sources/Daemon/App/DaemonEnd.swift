import Lifecycle
import Policy

/// What `DaemonEnd` knows of a worker.
struct EndingWorker: Hashable {
  var id: WorkerID
  /// nil: the engine doesn't know it.
  var state: WorkerState?
  /// An earlier daemon has left it, and it is being adopted.
  var isAdopting = false
  /// Another program supervises it: it is released, and not stopped.
  var isExternal = false
  /// An operation on it is under way on another thread, or it is being launched.
  var isBusy = false
  /// It sleeps in a frozen cgroup, which stays frozen without a daemon. A worker that only a signal or a tracer
  /// holds would be continued by any SIGCONT.
  var restsFrozen = false
  /// It hasn't ended since SIGKILL: nothing that the daemon can wait for is under way.
  var hasOutlivedKill = false

  var isAlive: Bool { isAdopting || state?.isAlive == true }
}

/// The functions of the daemon that `DaemonEnd` uses. Tests provide their own.
protocol DaemonEndHost: AnyObject {
  /// In the order of their names.
  var workers: [EndingWorker] { get }
  /// Workers that an earlier daemon has left are being adopted.
  var isAdopting: Bool { get }
  /// No event waits for the engine. If false, `engineIsQuiet` will be called.
  var isEngineQuiet: Bool { get }
  func wake(_ id: WorkerID, then answer: @escaping (Answer) -> Void)
  /// Releases an external worker, awake. `then` gets the reason if that failed.
  func release(_ id: WorkerID, then: @escaping (_ failure: String?) -> Void)
  /// Processes of an earlier daemon's workers that this one couldn't adopt, and that may still run.
  var unadopted: [(id: WorkerID, pid: Int32)] { get }
  /// It would sleep in a frozen cgroup.
  func freezes(_ id: WorkerID) -> Bool
  /// No worker is started any more because its dependencies are ready.
  func refuseWaitingStarts()
  /// For the next daemon.
  func save(_ id: WorkerID, _ state: WorkerState)
  func closeListeners()
  /// To all clients.
  func announceEnd(_ text: String)
  func log(_ priority: DaemonLog.Priority, _ text: String)
}

/// Whether the daemon continues. `DaemonEnd` sets it.
final class DaemonPhase {
  /// It stops its workers.
  fileprivate(set) var isEnding = false
  /// The daemon ends without its workers.
  fileprivate(set) var isLeaving = false

  /// No worker is started any more.
  var isClosing: Bool { isEnding || isLeaving }
}

/// The daemon's end. It stops its workers first, each before those that it depends on; or it leaves them (`leave`),
/// for an upgrade, or to move to another configuration directory. Belongs to the loop's thread.
final class DaemonEnd {
  private let host: any DaemonEndHost
  private let stopping: OrderlyStop
  private let timers: any Timers
  let phase: DaemonPhase
  /// The loop has nothing to do any more.
  private(set) var hasEnded = false
  /// External workers that are being released.
  private var releasing: Set<WorkerID> = []
  /// How often the release of an external worker has failed.
  private var failedReleases: [WorkerID: Int] = [:]
  /// Workers that didn't end by SIGKILL.
  private var outlived: Set<WorkerID> = []
  /// Only such workers are left, and a last time is waited for them.
  private var isPatient = false
  /// A worker of very much memory takes some seconds to end.
  static let lastPatience = Duration.seconds(10)
  /// Workers that are woken because only the daemon keeps them asleep, and whether each wake has ended.
  private var woken: [WorkerID: Bool] = [:]

  init(
    host: any DaemonEndHost, stopping: OrderlyStop, timers: any Timers,
    phase: DaemonPhase = DaemonPhase()
  ) {
    self.host = host
    self.stopping = stopping
    self.timers = timers
    self.phase = phase
  }

  /// By SIGTERM or SIGINT. The second one ends it at once.
  func signalHasCome() {
    guard phase.isEnding else {
      host.log(
        .notice, "stopping: all workers are stopped first (a second signal ends the daemon at once)"
      )
      return end()
    }
    host.log(
      .warning, "second signal: the daemon ends now, and workers that still run are left running")
    endAtOnce()
  }

  /// The daemon ends with whatever runs: the loop looks at this after its turn.
  func endAtOnce() { hasEnded = true }

  /// The engine has handled all events so far.
  func engineIsQuiet() {
    if phase.isEnding { endWhenAllIsQuiet() }
    if phase.isLeaving { leaveWhenAllIsQuiet() }
  }

  /// Why it isn't suspended any more; nil: it may be. What only a signal or a tracer holds was woken, or will be.
  func refusalToSuspend(_ id: WorkerID) -> String? {
    guard phase.isLeaving, !host.freezes(id) else { return nil }
    return "the daemon is ending, and nothing else would keep it asleep"
  }

  // MARK: with its workers

  /// Stops every worker, after those that depend on it, and ends when the last one has ended.
  func end() {
    phase.isEnding = true
    phase.isLeaving = false
    releaseExternals()
    endWhenAllIsQuiet()
  }

  private func releaseExternals() {
    for worker in host.workers where worker.isAlive && worker.isExternal { release(worker.id) }
  }

  private func release(_ id: WorkerID) {
    guard releasing.insert(id).inserted else { return }
    host.release(id) { [unowned self] failure in
      releasing.remove(id)
      if let failure { releaseHasFailed(id, failure) }
      endWhenAllIsQuiet()
    }
  }

  private func releaseHasFailed(_ id: WorkerID, _ failure: String) {
    let pause = OrderlyStop.pauses.delay(afterRestarts: failedReleases[id, default: 0])
    failedReleases[id, default: 0] += 1
    host.log(.error, "\(id): can't be released: \(failure); next attempt in \(pause.spoken)")
    timers.after(pause) { [weak self] in
      guard let self, !hasEnded else { return }
      releaseExternals()
    }
  }

  private func endWhenAllIsQuiet() {
    host.refuseWaitingStarts()
    stopping.advance()
    let alive = host.workers.filter(\.isAlive)
    if alive.isEmpty { return finish(saying: lastWords) }
    // The next attempt to stop such a worker begins its end again.
    outlived.formUnion(alive.filter(\.hasOutlivedKill).map(\.id))
    guard !isPatient, alive.allSatisfy({ outlived.contains($0.id) }) else { return }
    isPatient = true
    timers.after(Self.lastPatience) { [weak self] in self?.endWithoutLast() }
  }

  private var lastWords: String {
    let unadopted = host.unadopted
    if unadopted.isEmpty { return "all workers have ended; the daemon ends" }
    let names = unadopted.map { "\($0.id)" }.joined(separator: ", ")
    let pids = unadopted.map { "\($0.pid)" }.joined(separator: " ")
    return "the daemon ends; its workers have ended, but processes of an earlier daemon that it "
      + "couldn't adopt may still run (\(names)): run `kill -9 \(pids)`"
  }

  /// Nothing ends a process that waits in the kernel without limit.
  private func endWithoutLast() {
    isPatient = false
    let alive = host.workers.filter(\.isAlive)
    guard !hasEnded, alive.allSatisfy({ outlived.contains($0.id) }) else {
      return endWhenAllIsQuiet()
    }
    for worker in alive {
      if let state = worker.state { host.save(worker.id, state) }
    }
    let names = alive.map { "\($0.id)" }.joined(separator: ", ")
    finish(
      saying: "the daemon ends without \(names): SIGKILL has been sent, and has had no effect yet;"
        + " a process in state D (ps(1)) waits in the kernel, probably for a file system, and"
        + " ends afterwards")
  }

  // MARK: without them

  /// Ends the daemon as soon as nothing is under way. Workers that rest frozen sleep on; those that only a signal
  /// or a tracer holds are woken first. A worker that has outlived SIGKILL is left as it is.
  func leave() {
    guard !phase.isClosing else { return }
    host.log(.notice, "stopping: the workers keep running for the next daemon")
    phase.isLeaving = true
    leaveWhenAllIsQuiet()
  }

  private func leaveWhenAllIsQuiet() {
    // Such a start would begin after the daemon's last look at its workers.
    host.refuseWaitingStarts()
    guard !hasEnded, !host.isAdopting, host.isEngineQuiet else { return }
    let workers = host.workers
    var isQuiet = true
    for worker in workers {
      guard let state = worker.state, state.isAlive, !worker.hasOutlivedKill else { continue }
      let mustWake = state.sleeps && !worker.restsFrozen && woken[worker.id] != true
      if mustWake { wake(worker.id) }
      if mustWake || worker.isBusy || !state.isSettled { isQuiet = false }
    }
    guard isQuiet else { return }
    let left = workers.filter(\.isAlive)
    for worker in left {
      if let state = worker.state { host.save(worker.id, state) }
    }
    finish(saying: Self.leavingText(left.compactMap(\.state)))
  }

  /// Each is tried once: a worker that this daemon can't wake may be woken by the next one.
  private func wake(_ id: WorkerID) {
    guard woken[id] == nil else { return }
    woken[id] = false
    host.wake(id) { [unowned self] answer in
      woken[id] = true
      if answer.code != .done { host.log(.error, answer.text) }
      // The answer may come after the engine's last event, when the disk has the records.
      leaveWhenAllIsQuiet()
    }
  }

  private static func leavingText(_ states: [WorkerState]) -> String {
    let asleep = states.count(where: \.sleeps)
    let one = states.count == 1
    var text = "the daemon ends; \(states.count) worker\(one ? " remains" : "s remain")"
    if asleep > 0 {
      text += ", \(asleep) of them asleep until a daemon starts or `dormouse recover` is run"
    }
    return text
  }

  private func finish(saying text: String) {
    guard !hasEnded else { return }
    if !phase.isLeaving { host.closeListeners() }
    host.announceEnd(text)
    hasEnded = true
    host.log(.notice, text)
  }
}

extension WorkerState {
  var sleeps: Bool { self == .suspended || self == .hibernated }
  /// No operation of the daemon is under way.
  var isSettled: Bool { runs || sleeps }
}
