import Lifecycle
import Policy

// These functions simulate the clients that use the workers.

extension FleetSimulation {
  /// The interval at which activity is checked in nanoseconds, as in the daemon.
  private static let signInterval: Int64 = 1_000_000_000
  /// The duration in nanoseconds from which a use is declared as a background task, so that its
  /// worker isn't suspended in the middle of it.
  private static let longUse: Int64 = 2_000_000_000

  mutating func arrive(_ use: Trace.Use) {
    let worker = Int(use.worker)
    let state = engine.state(of: workers[worker].id) ?? .terminated
    let stateAtUse = self.stateAtUse(worker, state)
    if use.isSelfInitiated { return runWorkerTimer(worker, use.duration, stateAtUse: stateAtUse) }
    if use.count > 1 { report.found[.hot, default: 0] += Int(use.count) - 1 }
    if stateAtUse == .hot {
      // The continuation of a use has been counted already.
      if use.count > 0 { report.found[.hot, default: 0] += 1 }
      if isStalling { countStall(use.count) }
      return begin(worker, use.duration)
    }
    let isFirst = !workers[worker].waiting.contains { !$0.isSelfInitiated }
    workers[worker].waiting.append(
      FleetWorker.Waiting(at: now, stateAtUse: stateAtUse, duration: use.duration))
    if isFirst || state == .terminated { want(worker, state) }
  }

  /// Handles a timer of the worker itself, which wakes it if it sleeps. Without processes there is
  /// no timer.
  private mutating func runWorkerTimer(
    _ worker: Int, _ duration: Int32, stateAtUse: FleetReport.StateAtUse
  ) {
    switch stateAtUse {
    case .hot: work(worker, duration)
    case .cold: break
    case .suspended, .hibernated:
      workers[worker].waiting.append(
        FleetWorker.Waiting(
          at: now, stateAtUse: stateAtUse, duration: duration, isSelfInitiated: true))
      if workers[worker].waiting.count == 1 {
        deliver(.timerDue(workers[worker].id, "its own timer"))
      }
    }
  }

  private mutating func work(_ worker: Int, _ duration: Int32) {
    workers[worker].busyUntil = max(
      workers[worker].busyUntil, now + Int64(duration) * 1_000_000)
    bringBackTrimmed(worker)
    grow(worker)
    guard now - workers[worker].lastSign >= Self.signInterval else { return }
    workers[worker].lastSign = now
    deliver(.worked(workers[worker].id))
  }

  private func stateAtUse(_ worker: Int, _ state: WorkerState) -> FleetReport.StateAtUse {
    switch state {
    case .foreground, .background: .hot
    case .suspending, .suspended: .suspended
    case .hibernating, .hibernated: .hibernated
    case .resuming: workers[worker].body == .evicted ? .hibernated : .suspended
    case .launching, .terminating, .terminated: .cold
    }
  }

  /// Requests the worker for a use. With `foreground: {mode: manual}` a use is a request to bring
  /// the worker to the foreground; with `activity` it is a connection.
  private mutating func want(_ worker: Int, _ state: WorkerState) {
    switch state {
    case .terminated, .terminating: ask(.start, worker)
    case .launching: break
    default:
      if isManual(worker) {
        ask(.foreground, worker)
      } else {
        deliver(.wakeNeeded(workers[worker].id, "a connection"))
      }
    }
  }

  /// Starts a worker that ended while a use waited for it: the use tries again.
  mutating func restartIfWanted(_ worker: Int) {
    workers[worker].waiting.removeAll(where: \.isSelfInitiated)
    guard !workers[worker].waiting.isEmpty,
      engine.state(of: workers[worker].id) == .terminated
    else { return }
    ask(.start, worker)
  }

  private func isManual(_ worker: Int) -> Bool {
    workers[worker].profile.policy.foreground.mode == .manual
  }

  private mutating func ask(_ verb: Request.Verb, _ worker: Int) {
    nextRequest += 1
    deliver(.request(Request(id: nextRequest, verb: verb, worker: workers[worker].id)))
  }

  /// Serves the waiting uses when the worker runs.
  mutating func serve(_ worker: Int) {
    let waiting = workers[worker].waiting
    workers[worker].waiting = []
    workers[worker].kernelKills = 0
    for one in waiting where !one.isSelfInitiated {
      report.found[one.stateAtUse, default: 0] += 1
      waits.add(now - one.at)
      waited[one.stateAtUse, default: 0] += now - one.at
      workers[worker].account.waitSeconds += Double(now - one.at) / 1e9
    }
    for one in waiting {
      if one.isSelfInitiated { work(worker, one.duration) } else { begin(worker, one.duration) }
    }
  }

  private mutating func countStall(_ count: Int32) {
    report.stalledUses += Int(count)
    report.stalledSeconds += Double(machine.stall.wholeNanoseconds) / 1e9 * Double(count)
  }

  private mutating func begin(_ worker: Int, _ duration: Int32) {
    let time = Int64(duration) * 1_000_000
    workers[worker].busyUntil = max(workers[worker].busyUntil, now + time)
    workers[worker].uses += 1
    showSign(worker)
    waitForTrimmed(bringBackTrimmed(worker), worker)
    grow(worker)
    guard time > Self.longUse, workers[worker].body == .running else { return }
    workers[worker].longUses += 1
    if workers[worker].longUses == 1 {
      deliver(.taskBegan(workers[worker].id, task: "use", limit: nil))
    }
    steps.add(at: now + time, worker: Int32(worker), life: workers[worker].life, kind: .useEnds)
  }

  mutating func endUse(_ number: Int32, _ life: Int32) {
    let worker = Int(number)
    guard workers[worker].life == life, workers[worker].longUses > 0 else { return }
    workers[worker].longUses -= 1
    guard workers[worker].longUses == 0 else { return }
    deliver(.taskEnded(workers[worker].id, task: "use"))
    if !isManual(worker) { showSign(worker) }
  }

  private mutating func showSign(_ worker: Int) {
    let isManual = isManual(worker)
    let isInFront = engine.state(of: workers[worker].id) == .foreground
    guard now - workers[worker].lastSign >= Self.signInterval || (isManual && !isInFront) else {
      return
    }
    workers[worker].lastSign = now
    if isManual {
      if !isInFront { ask(.foreground, worker) }
    } else {
      deliver(.activity(workers[worker].id))
    }
  }

  /// Sets the memory of a running worker. It has its full footprint after a number of uses; a leak
  /// grows further.
  private mutating func grow(_ worker: Int) {
    guard workers[worker].body == .running else { return }
    let one = workers[worker]
    let warmth = min(1, Double(one.uses) / Double(max(1, machine.warmUp)))
    let share = machine.launchedShare + (1 - machine.launchedShare) * warmth
    let hours = Double(now - one.runsSince) / 3.6e12
    let bytes = Int64(Double(one.footprint) * share + Double(one.leak) * hours)
    guard bytes > one.memory else { return }
    let isWorthTelling = bytes - one.memory > one.memory / 20
    setResident(worker, bytes - one.trimmed)
    if isWorthTelling, workers[worker].body == .running {
      deliver(.footprint(one.id, ByteCount(bytes)))
    }
  }

  /// Returns the time that a use waits while the kernel reclaims memory.
  mutating func stallTime() -> Int64 {
    guard isStalling else { return 0 }
    countStall(1)
    return machine.stall.wholeNanoseconds
  }
}
