import Lifecycle
import Policy

// These functions do what the kernel and the daemon would do for a directive. A directive that no
// process could obey is a complaint.

extension SimulatedMachine {
  mutating func schedule(_ event: Event, of worker: WorkerID, upTo delay: Duration) {
    scheduled += 1
    pending.append(
      PendingEvent(
        at: now + random.duration(upTo: delay), order: scheduled, event: event,
        life: workers[worker]?.life))
  }

  /// Schedules the outcome of suspending, hibernating or resuming. Its message may be lost, or come
  /// long after it occurred.
  private mutating func begin(_ event: Event, of worker: WorkerID, upTo delay: Duration) {
    schedule(event, of: worker, upTo: random.chance(3) ? .seconds(90) : delay)
    workers[worker]?.operations += 1
    workers[worker]?.isBusy = true
    let last = pending.count - 1
    pending[last].operation = workers[worker]?.operations
    guard !isDraining else { return }
    if random.chance(4) { pending[last].fate = .lost }
    if random.chance(3) { pending[last].fate = .late }
  }

  /// Returns true if the directive itself is lost, in a few cases. Nothing happens then.
  private mutating func isLost() -> Bool { !isDraining && random.chance(1) }

  /// Schedules the answer of an inspection, which is true at that time. Sometimes there is no
  /// answer.
  private mutating func inspect(_ worker: WorkerID) -> String? {
    guard body(worker) != .absent else { return "inspects \(worker), which isn't there" }
    if isDraining || random.chance(50) {
      schedule(.found(worker, .underWay), of: worker, upTo: .milliseconds(200))
    }
    return nil
  }

  mutating func perform(_ directive: Directive) -> String? {
    let complaint = obey(directive)
    guard let worker = directive.worker else { return complaint }
    workers[worker]?.directives += 1
    // The worker may end before, during or after the outcome.
    if random.chance(deadliness), body(worker) != .absent {
      die(worker, .signaled(9), within: .milliseconds(400))
    }
    return complaint
  }

  private mutating func obey(_ directive: Directive) -> String? {
    switch directive {
    case .launch(let worker): launch(worker)
    case .shed(let worker, _, _): shed(worker)
    case .finishShed(let worker): finishShed(worker)
    case .checkSafePoint(let worker): checkSafePoint(worker)
    case .suspend(let worker): suspend(worker)
    case .hibernate(let worker): hibernate(worker)
    case .resume(let worker): resume(worker)
    case .terminate(let worker), .abort(let worker): terminate(worker)
    case .checkWatchdog(let worker): checkWatchdog(worker)
    case .kill(let worker): kill(worker)
    case .purge(let worker): purge(worker)
    case .trim(let worker): trim(worker)
    case .fill(let worker): fill(worker)
    case .measure(let worker): measure(worker)
    case .inspect(let worker): inspect(worker)
    case .expireTask(let worker, let task): expire(worker, task)
    case .answer, .transition, .pressureChanged, .report, .wouldHave,
      .watchdogMissed, .overLimit, .leakSuspected, .willTerminate, .willNotTerminate,
      .protectedLeft, .terminatesNone:
      nil
    }
  }

  func body(_ worker: WorkerID) -> SimulatedWorker.Body {
    workers[worker]?.body ?? .absent
  }

  private mutating func launch(_ worker: WorkerID) -> String? {
    guard body(worker) == .absent else { return "launches \(worker), which runs" }
    let life = (workers[worker]?.life ?? 0) + 1
    workers[worker] = SimulatedWorker(body: .spawning, life: life)
    if random.chance(5) {
      schedule(.launchFailed(worker, "no such file"), of: worker, upTo: .milliseconds(20))
    } else {
      schedule(.launched(worker), of: worker, upTo: .milliseconds(50))
    }
    return nil
  }

  private mutating func shed(_ worker: WorkerID) -> String? {
    guard body(worker) == .running else { return "asks \(worker), which doesn't run, to shed" }
    guard workers[worker]?.isShedding == false else { return "asks \(worker) twice to shed" }
    workers[worker]?.isShedding = true
    if random.chance(75) { schedule(.shedAnswered(worker), of: worker, upTo: .seconds(6)) }
    return nil
  }

  private mutating func finishShed(_ worker: WorkerID) -> String? {
    guard workers[worker]?.isShedding == true else { return "finishes no shed of \(worker)" }
    if random.chance(2) {
      // The measurement is lost.
      workers[worker]?.isShedding = false
      return nil
    }
    // From here on the worker may be asked again. The engine doesn't wait for a measurement
    // forever.
    workers[worker]?.isShedding = false
    let before = workers[worker]?.footprint ?? .zero
    let after = random.chance(60) ? ByteCount(before.bytes / 2) : before
    let event = Event.shedFinished(worker, before: before, after: after)
    schedule(event, of: worker, upTo: .milliseconds(20))
    return nil
  }

  private mutating func checkSafePoint(_ worker: WorkerID) -> String? {
    guard body(worker) == .running else { return "looks for locks of \(worker), which doesn't run" }
    // The answer is sometimes lost. The engine must not wait for it forever.
    if random.chance(97) {
      let held = random.chance(80) ? 0 : 1
      schedule(.fileLocks(worker, held: held), of: worker, upTo: .milliseconds(10))
    }
    return nil
  }

  private mutating func checkWatchdog(_ worker: WorkerID) -> String? {
    guard body(worker) == .running else {
      return "expects WATCHDOG=1 of \(worker), which doesn't run"
    }
    // The answer is sometimes lost. Nothing may follow from that.
    guard random.chance(95) else { return nil }
    let sign = random.chance(90) ? now : random.pick([nil, now + .seconds(-3600)])
    schedule(.watchdogSeen(worker, at: sign), of: worker, upTo: .milliseconds(10))
    return nil
  }

  private mutating func purge(_ worker: WorkerID) -> String? {
    guard let offered = workers[worker]?.purgeable, offered > .zero, body(worker) != .absent else {
      return "purges \(worker), which offers nothing"
    }
    let event: Event =
      random.chance(10)
      ? .purgeFailed(worker, "its memory can't be opened") : .purged(worker, freed: offered)
    schedule(event, of: worker, upTo: .milliseconds(20))
    return nil
  }

  private mutating func suspend(_ worker: WorkerID) -> String? {
    guard body(worker) == .running else { return "suspends \(worker), which doesn't run" }
    guard !isMoving(worker) else {
      return "suspends \(worker), whose memory is being moved"
    }
    if isLost() { return nil }
    var outcome = Event.suspended(worker)
    if random.chance(10) {
      outcome =
        random.chance(50)
        ? .staysAwake(worker, "it works by its own timer")
        : .suspendFailed(worker, "a child escaped")
    }
    begin(outcome, of: worker, upTo: .milliseconds(50))
    return nil
  }

  private mutating func hibernate(_ worker: WorkerID) -> String? {
    guard body(worker) == .stopped else { return "hibernates \(worker), which isn't suspended" }
    if isLost() { return nil }
    if random.chance(12) {
      let event = Event.hibernateFailed(worker, "no space left", permanent: random.chance(20))
      begin(event, of: worker, upTo: .milliseconds(200))
      return nil
    }
    let before = workers[worker]?.footprint ?? .zero
    let result = HibernationResult(
      footprintBefore: before, footprintAfter: .kilobytes(random.pick([4, 128, 512, 2048])),
      imageSize: ByteCount(before.bytes / 5), duration: .milliseconds(50))
    begin(.hibernated(worker, result), of: worker, upTo: .milliseconds(300))
    return nil
  }

  private mutating func resume(_ worker: WorkerID) -> String? {
    guard body(worker) == .stopped || body(worker) == .evicted else {
      return "resumes \(worker), which isn't asleep"
    }
    if isLost() { return nil }
    let event: Event =
      random.chance(8)
      ? .resumeFailed(worker, "checksum differs", intact: random.chance(60))
      : .resumed(worker, random.duration(upTo: .milliseconds(40)))
    begin(event, of: worker, upTo: .milliseconds(60))
    // Without this, memory that is restored only in part, and an inspection that has to detect it,
    // would be rare.
    if case .resumeFailed(_, _, intact: false) = event, !isDraining, random.chance(50) {
      pending[pending.count - 1].fate = .lost
    }
    return nil
  }

  private mutating func terminate(_ worker: WorkerID) -> String? {
    switch body(worker) {
    case .absent, .spawning: return "terminates \(worker), which isn't there"
    case .evicted: return "sends SIGTERM to \(worker), which has no memory to run in"
    case .running, .stopped: break
    }
    if random.chance(80) { die(worker, .exited(0), within: .seconds(3)) }
    return nil
  }

  private mutating func kill(_ worker: WorkerID) -> String? {
    guard body(worker) != .absent else { return "kills \(worker), which isn't there" }
    if random.chance(5) { workers[worker]?.isUnkillable = true }
    guard workers[worker]?.isUnkillable == false else { return nil }
    die(worker, .signaled(9), within: .milliseconds(50))
    return nil
  }

  mutating func die(_ worker: WorkerID, _ status: ExitStatus, within delay: Duration) {
    schedule(.exited(worker, status), of: worker, upTo: delay)
  }

  private mutating func measure(_ worker: WorkerID) -> String? {
    guard body(worker) != .absent else { return "measures \(worker), which isn't there" }
    // A measurement is sometimes lost, as for a process that isn't readable.
    if random.chance(97), let footprint = workers[worker]?.footprint {
      schedule(.footprint(worker, footprint), of: worker, upTo: .milliseconds(20))
    }
    return nil
  }

  private mutating func expire(_ worker: WorkerID, _ task: String) -> String? {
    guard body(worker) == .running else { return "sends a message to \(worker), which doesn't run" }
    if random.chance(50) {
      schedule(.taskEnded(worker, task: task), of: worker, upTo: .seconds(2))
    }
    return nil
  }
}
