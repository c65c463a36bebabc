import Lifecycle
import Policy

@testable import Daemon
@testable import Simulation

// One daemon's life: its events, and what must be true when it is over.

extension ShellWorld {
  /// How a daemon's life ends.
  private enum End: CaseIterable {
    /// The daemon is idle for a long time, all workers are stopped, and then the daemon is stopped.
    case quiet
    /// The daemon stops its workers itself.
    case shutdown
    /// The daemon leaves its workers to the next one.
    case leave
    /// The daemon is killed.
    case death
  }

  /// Simulates one daemon. Errors are in `complaints`.
  ///
  /// - Parameter isLast: whether the daemon has no successor.
  /// - Returns: the next daemon.
  func live(stimuli: Int, isLast: Bool) throws -> ShellWorld? {
    defer { abandon() }
    begin()
    for _ in 0..<stimuli {
      run(until: clock.now + random.duration(upTo: random.chance(20) ? .seconds(60) : .seconds(2)))
      stimulate()
      if !complaints.isEmpty { return nil }
    }
    switch isLast ? .quiet : random.pick([End.quiet, .quiet, .quiet, .shutdown, .leave, .death]) {
    case .quiet:
      stabilize()
      stopAll()
    case .shutdown: end(by: .shutdown)
    case .leave:
      end(by: .leave)
      return complaints.isEmpty ? try ShellWorld(after: self) : nil
    case .death:
      count("died")
      return try ShellWorld(after: self)
    }
    return nil
  }

  /// Starts the daemon as `Daemon.begin` does.
  private func begin() {
    for worker in reloads.current.workers { declared.addDeclared(worker) }
    survivors.adopt()
    declared.startWorkers(reloads.current.workers)
    schedules.follow()
    rules.follow(reloads.current.adoption)
    // This would be rare otherwise, since adoption is soon over.
    if returning.isUnderWay, random.chance(20) { clients.askReload(allowEmpty: true) }
  }

  // MARK: events

  private func stimulate() {
    let ids = workers.keys.sorted()
    // A request may be answered at once, and the answer makes random choices of its own.
    var choices = SplitMix64(seed: random.next())
    guard !ids.isEmpty else { return clients.askReload(allowEmpty: true) }
    let id = random.pick(ids)
    let run = run(of: id)
    switch random.next() % 100 {
    case ..<36: clients.askSomething(of: id, using: &choices)
    case ..<46: driver.send(.memory(Self.reading(.megabytes(random.pick([40, 200, 900, 6000])))))
    case ..<53: driver.send(.footprint(id, .megabytes(random.pick([1, 10, 60]))))
    case ..<58: if run?.body == .running { driver.send(.activity(id)) }
    case ..<67: run?.arrive("a connection")
    case ..<70:
      if run?.body == .running { driver.send(.taskBegan(id, task: "save", limit: .seconds(5))) }
    case ..<75: run?.die(.signaled(11))
    case ..<80: saved.stall(for: random.duration(upTo: .seconds(3)))
    case ..<82: driver.setPolicy(.ofShell(using: &random))
    case ..<83: schedules.setClock(by: random.pick([-7000, -100, 100, 7000]))
    case ..<86: driver.send(.stalled(random.pick([.warning, .urgent, .critical])))
    case ..<92: clients.askReload(allowEmpty: choices.chance(50))
    case ..<95: clients.askRun(random.pick(["r0", "r1", "r2", "w0"]), importance: 10)
    case ..<98: clients.askAdopt(random.pick(["x0", "x1"]), mayBeTerminated: choices.chance(50))
    default: clients.ask(.release, id)
    }
  }

  private static func reading(_ available: ByteCount) -> MemoryReading {
    MemoryReading(total: .gigabytes(8), available: available)
  }

  // MARK: checks

  /// Ends faults and pressure. Lost outcomes are detected, and all operations complete.
  private func heal() {
    hasFaults = false
    driver.send(.pressureSet(.normal, for: .zero))
    driver.send(.memory(Self.reading(.gigabytes(8))))
  }

  private func stabilize() {
    heal()
    // The time is longer than the period of a schedule, and than any delay of a lost or late
    // outcome.
    run(until: clock.now + .seconds(380))
    for id in workers.keys.sorted() {
      if let reason = supervision.forgotten(id) { complain("\(id) isn't started again: \(reason)") }
      if let what = liveness.omission(of: id) { complain("\(id) \(what)") }
      if let what = schedules.omission(of: id) { complain("\(id) \(what)") }
      let sleeps = driver.state.state(of: id)?.sleeps == true
      if sleeps, run(of: id)?.isWatched == false {
        complain("\(id) sleeps, and nothing would wake it")
      }
    }
    if returning.isUnderWay { complain("workers of an earlier daemon are still returning") }
    for omission in [reloads.omission, survivors.omission, externalHost.omission] {
      if let omission { complain(omission) }
    }
  }

  /// Stops every worker, and checks that nothing of it is left.
  private func stopAll() {
    let ids = workers.keys.sorted()
    supervision.starter.stopWaiting("all workers are to stop")
    // A worker that has ended is stopped, too: it may wait for its restart.
    for id in ids { clients.ask(workers[id]?.external == nil ? .stop : .release, id) }
    run(until: clock.now + .seconds(300))
    if let remains = runs.remains { complain("\(remains) is still there") }
    if clock.watched.count > 0 { complain("\(clock.watched.count) descriptors are still watched") }
    if let child = launching.leftChild { complain(child) }
    // Schedules continue, and each of their times is written to the disk.
    let ofSchedules = schedules.isWriting ? ["ShellWorld.swift"] : []
    let others = clock.timedBy.subtracting(
      ["ScheduleMonitor.swift", "RuleAdoption.swift", "ShellExternals.swift"] + ofSchedules)
    if !others.isEmpty, !survivors.hasRemains {
      complain("timers still run, of \(others.sorted())")
    }
    ending.didReceiveSignal()
    run(until: clock.now + .seconds(3000))
    checkEnd()
    if clients.wereCutOff { complain("requests are answered by the daemon's end alone") }
  }

  private func end(by verb: ControlVerb) {
    count("\(verb)")
    // Some of the faults last for a while.
    if random.chance(50) { heal() }
    switch verb {
    case .shutdown: ending.didReceiveSignal()
    case .leave: clients.askToLeave()
    }
    run(until: clock.now + random.duration(upTo: .seconds(100)))
    if verb == .leave, !ending.hasEnded, random.chance(20) {
      count("shutdown instead of leave")
      ending.didReceiveSignal()
    }
    run(until: clock.now + .seconds(100))
    heal()
    run(until: clock.now + .seconds(3000))
    checkEnd()
  }

  enum ControlVerb { case shutdown, leave }

  private func checkEnd() {
    if !ending.hasEnded {
      let states = workers.keys.map { "\($0) \(driver.state.state(of: $0)?.rawValue ?? "-")" }
      return complain("the daemon doesn't end: \(states.sorted())")
    }
    if let omission = endCheck.omission { complain(omission) }
    if let launch = launching.unfinished { complain(launch) }
    for omission in clients.omissions { complain(omission) }
    // The daemon doesn't wait for a worker that ends late after SIGKILL (`DaemonEnd.lastTimeout`).
    // The next daemon removes its image, which the record names.
    let image = images.first { !survivors.holds($0) && saved.lastSaved[$0.name] == nil }
    if !phase.isLeaving, let image { complain("an image of \(image) is left") }
  }
}
