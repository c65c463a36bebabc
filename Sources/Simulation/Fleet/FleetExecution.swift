import Lifecycle
import Policy

// These functions carry out the engine's directives on the simulated machine, each at its time.

extension FleetSimulation {
  mutating func perform(_ directive: Directive) {
    switch directive {
    case .transition(let transition): count(transition)
    case .leakSuspected(let id, _):
      report.leaksSuspected += 1
      let hasNone = numbers[id].map { workers[Int($0)].leak == 0 } ?? true
      if hasNone { report.leaksSuspectedWrongly += 1 }
    default:
      guard let id = directive.worker, let number = numbers[id] else { return }
      perform(directive, on: Int(number))
    }
  }

  private mutating func perform(_ directive: Directive, on worker: Int) {
    let id = workers[worker].id
    switch directive {
    case .launch: launch(worker)
    case .suspend: schedule(suspension(of: id), of: worker, in: machine.suspend)
    case .hibernate: hibernate(worker)
    case .resume: resume(worker)
    case .shed: schedule(.shedAnswered(id), of: worker, in: .milliseconds(20))
    case .finishShed: finishShed(worker)
    // Fleets have no watchdogs.
    case .checkWatchdog: break
    case .abort: schedule(.exited(id, .signaled(6)), of: worker, in: .milliseconds(5))
    case .terminate: schedule(.exited(id, .exited(0)), of: worker, in: machine.exit)
    case .kill: schedule(.exited(id, .signaled(9)), of: worker, in: .milliseconds(5))
    case .measure:
      schedule(.footprint(id, ByteCount(workers[worker].memory)), of: worker, in: .milliseconds(1))
    case .checkSafePoint: schedule(.fileLocks(id, held: 0), of: worker, in: .milliseconds(1))
    // No outcome is lost here, so it will come.
    case .inspect: schedule(.found(id, .underWay), of: worker, in: .milliseconds(1))
    // Workers offer no purgeable memory here.
    case .purge: schedule(.purgeFailed(id, "nothing is offered"), of: worker, in: .milliseconds(1))
    case .trim: beginTrim(worker)
    // No operator asks for a fill here.
    case .fill: schedule(.filled(id, swapped: .zero), of: worker, in: .milliseconds(1))
    case .expireTask, .answer, .transition, .pressureChanged, .report, .wouldHave,
      .watchdogMissed, .overLimit, .leakSuspected, .willTerminate, .willNotTerminate,
      .protectedLeft, .terminatesNone:
      break
    }
  }

  private func suspension(of id: WorkerID) -> Event {
    guard machine.staysAwake.contains(id),
      engine.snapshot(of: id, at: Instant(nanoseconds: now))?.mayStayAwake == true
    else { return .suspended(id) }
    return .staysAwake(id, "it works by its own timer")
  }

  mutating func schedule(_ event: Event, of worker: Int, in time: Duration) {
    steps.add(
      at: now + time.wholeNanoseconds, worker: Int32(worker), life: workers[worker].life,
      kind: .event(event))
  }

  private mutating func launch(_ worker: Int) {
    report.launches += 1
    workers[worker].life += 1
    workers[worker].body = .starting
    workers[worker].runsSince = now
    workers[worker].uses = 0
    setResident(worker, Int64(Double(workers[worker].footprint) * machine.launchedShare))
    // The kernel's OOM killer may have ended the worker at once.
    guard workers[worker].body == .starting else { return }
    let id = workers[worker].id
    schedule(.launched(id), of: worker, in: .milliseconds(5))
    let ready = max(workers[worker].launch, .milliseconds(6)) + .nanoseconds(stallTime())
    schedule(.ready(id), of: worker, in: ready)
  }

  /// Returns the time until an operation has ended. Operations run one after the other, on one
  /// thread.
  private mutating func onMechanism(_ cost: Duration) -> Duration {
    report.mechanismSeconds += Double(cost.wholeNanoseconds) / 1e9
    mechanismFreeAt = max(now, mechanismFreeAt) + cost.wholeNanoseconds
    return .nanoseconds(mechanismFreeAt - now)
  }

  private mutating func hibernate(_ worker: Int) {
    let footprint = workers[worker].memory
    let image = Int64(Double(footprint) * machine.imageShare)
    let disk = policy.hibernate.disk
    let id = workers[worker].id
    guard imageBytes + image <= disk.budget.bytes,
      writtenToday + image <= disk.dailyWrites.bytes
    else {
      report.hibernationsRefused += 1
      let reason = "hibernate.disk allows no more images now"
      return schedule(
        .hibernateFailed(id, reason, permanent: false), of: worker, in: .milliseconds(1))
    }
    report.hibernations += 1
    imageBytes += image
    writtenToday += image
    workers[worker].image = image
    workers[worker].account.writtenBytes += image
    report.writtenGigabytes += Double(image) / 1_073_741_824
    let cost = machine.hibernate(footprint)
    let result = HibernationResult(
      footprintBefore: ByteCount(footprint), footprintAfter: machine.hibernatedFootprint,
      imageSize: ByteCount(image), duration: cost)
    schedule(.hibernated(id, result), of: worker, in: onMechanism(cost))
  }

  private mutating func resume(_ worker: Int) {
    let stall = Duration.nanoseconds(stallTime())
    workers[worker].account.wakes += 1
    let isEvicted = workers[worker].body == .evicted
    let cost = isEvicted ? machine.resume(workers[worker].evicted) : machine.suspendedWake
    let time = (isEvicted ? onMechanism(cost) : cost) + stall
    schedule(.resumed(workers[worker].id, time), of: worker, in: time)
  }

  private mutating func finishShed(_ worker: Int) {
    let before = workers[worker].resident
    let isRunning = workers[worker].body == .running
    let after = isRunning ? Int64(Double(before) * (1 - machine.shedShare)) : before
    workers[worker].uses = min(workers[worker].uses, machine.warmUp / 2)
    setResident(worker, after)
    let trimmed = workers[worker].trimmed
    let event = Event.shedFinished(
      workers[worker].id, before: ByteCount(before + trimmed), after: ByteCount(after + trimmed))
    schedule(event, of: worker, in: .milliseconds(5))
  }

  private mutating func count(_ transition: Transition) {
    if transition.to == .suspended, transition.from == .suspending { report.suspensions += 1 }
    guard transition.to == .terminating else { return }
    switch transition.cause {
    case .pressure: report.terminated[transition.from.rawValue, default: 0] += 1
    case .watchdog: report.watchdog += 1
    default: break
    }
  }

  /// Applies an outcome to the worker's body when it occurs.
  mutating func apply(_ event: Event, to worker: Int) {
    switch event {
    case .ready: workers[worker].body = .running
    case .suspended: workers[worker].body = .frozen
    case .hibernated(_, let result):
      workers[worker].addElapsedTime(at: now)
      workers[worker].body = .evicted
      workers[worker].evicted = result.footprintBefore.bytes
      workers[worker].trimmed = 0
      setResident(worker, result.footprintAfter.bytes)
    case .resumed:
      let wasEvicted = workers[worker].body == .evicted
      workers[worker].addElapsedTime(at: now)
      workers[worker].body = .running
      imageBytes -= workers[worker].image
      workers[worker].image = 0
      if wasEvicted { setResident(worker, workers[worker].evicted) }
    case .exited: die(worker)
    default: break
    }
  }
}
