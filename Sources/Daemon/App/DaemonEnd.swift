import Lifecycle
import Policy

/// Whether the daemon is ending, and how. Only `DaemonEnd` changes it.
final class DaemonPhase {
  /// The daemon stops its workers, and ends when they have ended.
  var isEnding = false
  /// The daemon ends and leaves its workers to the next daemon.
  var isLeaving = false

  /// No worker is started any more.
  var isClosing: Bool { isEnding || isLeaving }
}

/// Ends the daemon. Either it stops its workers first, each one before the workers that it depends
/// on; or it leaves them running (`leave`), for an upgrade or to move to another configuration
/// directory. A worker that couldn't be ended (its image can't be read, SIGKILL has no effect) is
/// asked again after a growing pause, because the daemon ends after its last worker. Belongs to the
/// loop's thread.
final class DaemonEnd {
  private let externals: ExternalAdoption
  private let control: ControlServer
  /// The loop has nothing left to do, and returns.
  private(set) var hasEnded = false
  /// External workers that are being released.
  private var releasing: Set<WorkerID> = []
  /// The workers that were asked to stop.
  private var asked: Set<WorkerID> = []
  /// By worker, how often its stop or release has failed.
  private var failures: [WorkerID: Int] = [:]
  /// The workers that can't be ended for now.
  private var unstoppable: Set<WorkerID> = []
  /// Workers that didn't end after SIGKILL.
  private var outlived: Set<WorkerID> = []
  /// Only workers that outlived SIGKILL remain, and the last timeout for them has begun.
  private var isLastTimeoutSet = false
  /// A worker with very much memory needs some seconds to end after SIGKILL.
  private static let lastTimeout = Duration.seconds(10)
  private static let pauses = Backoff(max: .seconds(30))
  /// Workers that are woken because only the daemon keeps them asleep. The value is whether the
  /// wake has ended.
  private var woken: [WorkerID: Bool] = [:]

  init(externals: ExternalAdoption, control: ControlServer) {
    self.externals = externals
    self.control = control
  }

  private var driver: EngineDriver { externals.driver }
  private var requests: WorkerRequests { externals.ends.requests }
  var timers: any Timers { externals.ends.loop }
  var workers: WorkerRegistry { externals.workers }
  var log: DaemonLog { externals.ends.log }
  var phase: DaemonPhase { externals.declared.phase }

  /// Handles SIGTERM or SIGINT. The first one stops the workers; the second one ends the daemon at
  /// once.
  func didReceiveSignal() {
    guard phase.isEnding else {
      log(
        .notice, "stopping: all workers are stopped first (a second signal ends the daemon at once)"
      )
      return end()
    }
    log(
      .warning, "second signal: the daemon ends now, and workers that still run are left running")
    endAtOnce()
  }

  /// Ends the daemon without waiting for what still runs. The loop checks `hasEnded` after each
  /// turn.
  func endAtOnce() { hasEnded = true }

  /// The driver calls this when the engine has handled all events so far.
  func engineDidBecomeQuiet() {
    if phase.isEnding { endIfQuiet() }
    if phase.isLeaving { leaveIfQuiet() }
  }

  /// The reason for which the worker isn't suspended any more; nil if it may be suspended. A
  /// sleeping worker that only a signal or a tracer keeps at rest has been woken by now, or will
  /// be.
  func refusalToSuspend(_ id: WorkerID) -> String? {
    guard phase.isLeaving, !sleepsFrozen(id) else { return nil }
    return "the daemon is ending, and nothing else would keep it asleep"
  }

  // MARK: workers

  /// The workers that are alive, sorted by name. Workers that are being adopted are included.
  private var alive: [WorkerID] { workers.keys.filter(requests.isAlive).sorted() }

  /// Whether the worker sleeps, or would sleep, in a frozen cgroup: it stays frozen without a
  /// daemon. Any SIGCONT would continue a worker that only a signal or a tracer keeps at rest.
  private func sleepsFrozen(_ id: WorkerID) -> Bool {
    workers[id]?.process?.cgroup?.freezer != nil
  }

  /// Writes the records of these workers for the next daemon.
  private func save(_ left: [WorkerID]) {
    for id in left {
      if let worker = workers[id], let state = driver.state.state(of: id) {
        externals.recordWriter.save(worker, state: state)
      }
    }
  }

  // MARK: end with the workers

  /// Stops every worker, after those that depend on it, and ends when the last one has ended.
  func end() {
    phase.isEnding = true
    phase.isLeaving = false
    // Otherwise systemd would kill the daemon after 90 s, and workers would be left running.
    ServiceManager.send(
      ServiceManager.request(moreTime: workers.timeToEnd(requests.isAlive)))
    releaseExternals()
    endIfQuiet()
  }

  private func releaseExternals() {
    for id in alive where workers[id]?.external != nil { release(id) }
  }

  private func release(_ id: WorkerID) {
    guard releasing.insert(id).inserted else { return }
    externals.release(id) { [unowned self] failure in
      releasing.remove(id)
      if let failure { releaseDidFail(id, failure) }
      endIfQuiet()
    }
  }

  /// The pause before a worker whose stop or release has failed is asked again.
  private func pauseAfterFailure(of id: WorkerID) -> Duration {
    defer { failures[id, default: 0] += 1 }
    return Self.pauses.delay(afterRestarts: failures[id, default: 0])
  }

  private func releaseDidFail(_ id: WorkerID, _ failure: String) {
    let pause = pauseAfterFailure(of: id)
    log(.error, "\(id): can't be released: \(failure); next attempt in \(pause.text)")
    timers.after(pause) { [weak self] in
      guard let self, !hasEnded else { return }
      releaseExternals()
    }
  }

  private func endIfQuiet() {
    externals.declared.starter.stopWaiting("the daemon is ending")
    stopWorkers()
    let alive = alive
    if alive.isEmpty { return finish(saying: closingText) }
    // The next attempt to stop such a worker begins its end again, so this is recorded now.
    outlived.formUnion(alive.filter(driver.state.hasOutlivedKill))
    guard !isLastTimeoutSet, outlived.isSuperset(of: alive) else { return }
    isLastTimeoutSet = true
    timers.after(Self.lastTimeout) { [weak self] in self?.endWithoutUnkillable() }
  }

  /// Asks all workers to end that no other worker needs any more. It is called again as they end.
  func stopWorkers() {
    let alive = alive
    // A worker that can't be killed doesn't delay the workers that it depends on.
    let needed = Set(
      alive.filter { !unstoppable.contains($0) }.flatMap { id in
        (workers[id]?.configuration.dependsOn ?? []).map { WorkerID($0.worker) }
      })
    // Another program supervises an external worker, and ends it.
    for id in alive where !needed.contains(id) && workers[id]?.external == nil {
      guard asked.insert(id).inserted else { continue }
      requests.request(.stop, id) { [unowned self] in
        if $0.code != .done { stopDidFail(id, $0) }
      }
    }
  }

  private func stopDidFail(_ id: WorkerID, _ answer: Answer) {
    let pause = pauseAfterFailure(of: id)
    log(.error, "\(answer.text); it is asked to stop again in \(pause.text)")
    timers.after(pause) { [weak self] in
      self?.asked.remove(id)
      self?.stopWorkers()
    }
    guard answer.code == .failed else { return }
    unstoppable.insert(id)
    stopWorkers()
  }

  private var closingText: String {
    let unadopted = unadopted
    if unadopted.isEmpty { return "all workers have ended; the daemon ends" }
    let names = unadopted.map { "\($0.id)" }.joined(separator: ", ")
    let pids = unadopted.map { "\($0.pid)" }.joined(separator: " ")
    return "the daemon ends; its workers have ended, but processes of an earlier daemon that it "
      + "couldn't adopt may still run (\(names)): run `kill -9 \(pids)`"
  }

  /// Processes of an earlier daemon's workers that this one couldn't adopt, and that may still run.
  private var unadopted: [(id: WorkerID, pid: Int32)] {
    externals.recordWriter.records.all.filter { record in
      workers[WorkerID(record.name)]?.process == nil && record.external == nil
        && record.life(bootID: externals.recordWriter.bootID) != .hasEnded
    }.map { (WorkerID($0.name), $0.process.pid) }.sorted { $0.0 < $1.0 }
  }

  /// Ends the daemon without the workers that outlived SIGKILL: nothing can end a process that
  /// waits in the kernel without limit.
  private func endWithoutUnkillable() {
    isLastTimeoutSet = false
    let alive = alive
    guard !hasEnded, outlived.isSuperset(of: alive) else { return endIfQuiet() }
    save(alive)
    let names = alive.map { "\($0)" }.joined(separator: ", ")
    finish(
      saying: "the daemon ends without \(names): SIGKILL has been sent, and has had no effect yet;"
        + " a process in state D (ps(1)) waits in the kernel, probably for a file system, and"
        + " ends afterwards")
  }

  // MARK: end without the workers

  /// Ends the daemon as soon as no operation is running. Workers in a frozen cgroup sleep on; those
  /// that only a signal or a tracer keeps at rest are woken first. A worker that has outlived
  /// SIGKILL is left as it is.
  func leave() {
    guard !phase.isClosing else { return }
    log(.notice, "stopping: the workers keep running for the next daemon")
    phase.isLeaving = true
    leaveIfQuiet()
  }

  private func leaveIfQuiet() {
    // Such a start could begin after the daemon's last check of its workers.
    externals.declared.starter.stopWaiting("the daemon is ending")
    guard !hasEnded, !requests.returning.isUnderWay, driver.isQuiet else { return }
    var isQuiet = true
    for id in workers.keys.sorted() {
      guard let state = driver.state.state(of: id), state.isAlive,
        !driver.state.hasOutlivedKill(id)
      else { continue }
      let mustWake = state.sleeps && !sleepsFrozen(id) && woken[id] != true
      if mustWake { wake(id) }
      // A process that is launched after the daemon has ended would have no record.
      let isBusy = workers[id]?.isBusy == true || workers.launching.contains(id)
      if mustWake || isBusy || !state.isSettled { isQuiet = false }
    }
    guard isQuiet else { return }
    let left = alive
    save(left)
    finish(saying: Self.leavingText(left.compactMap { driver.state.state(of: $0) }))
  }

  /// Each worker is woken only once: if this daemon can't wake it, the next one may.
  private func wake(_ id: WorkerID) {
    guard woken[id] == nil else { return }
    woken[id] = false
    requests.request(.wake, id) { [unowned self] answer in
      woken[id] = true
      if answer.code != .done { log(.error, answer.text) }
      // The answer may come after the engine's last event, since it waits until the records are on
      // disk.
      leaveIfQuiet()
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
    if !phase.isLeaving {
      for worker in workers.values { externals.ends.listening.closeListeners(of: worker) }
    }
    driver.replies.deliverAll()
    control.announceEnd(text)
    hasEnded = true
    log(.notice, text)
  }
}

extension WorkerState {
  /// No operation of the daemon on the worker is running.
  var isSettled: Bool { runs || sleeps }
}
