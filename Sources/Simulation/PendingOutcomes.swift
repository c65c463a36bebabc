import Lifecycle
import Policy

// Outcomes change the simulated processes when they occur. An outcome may have become impossible
// meanwhile.

extension SimulatedMachine {
  /// Delivers a pending event, if it is still valid. Some events of ended workers are delivered,
  /// too, as in reality: the outcome was on its way when the worker ended.
  mutating func resolve(_ message: PendingEvent) -> Event? {
    guard let worker = message.event.subject else { return message.event }
    guard let state = workers[worker], state.life == message.life else { return nil }
    if state.body == .absent {
      return message.event.isExit || random.chance(50) ? nil : message.event
    }
    if let echoOf = message.echoOf { return echoOf == state.directives ? message.event : nil }
    if case .found = message.event { return .found(worker, condition(of: state)) }
    if let operation = message.operation {
      // The daemon drops the outcome of an operation that isn't the latest.
      if message.fate == .occurred { return operation == state.operations ? message.event : nil }
      workers[worker]?.isBusy = false
    }
    apply(message.event, to: worker)
    switch message.fate {
    case .delivered, .occurred: break
    case .lost: return nil
    case .late:
      postpone(message)
      return nil
    }
    if !message.event.isExit, random.chance(4) { echo(message) }
    return message.event
  }

  /// The result of an inspection. It describes the body as it is, whatever was reported.
  private func condition(of worker: SimulatedWorker) -> WorkerCondition {
    if worker.isBusy { return .underWay }
    if worker.isUnverifiable { return .unverifiable("its resume failed half-way") }
    switch worker.body {
    case .stopped: return .suspended
    case .evicted: return .hibernated
    case .running, .spawning, .absent: return .running
    }
  }

  private mutating func postpone(_ message: PendingEvent) {
    scheduled += 1
    var late = message
    late.at = now + random.duration(upTo: .seconds(120))
    late.order = scheduled
    late.fate = .occurred
    pending.append(late)
  }

  /// Delivers the same event again a little later, unless another directive for the worker came by
  /// then. Outcomes carry no number, so the engine couldn't distinguish them.
  private mutating func echo(_ message: PendingEvent) {
    guard let worker = message.event.subject else { return }
    scheduled += 1
    var echo = message
    echo.at = now + random.duration(upTo: .milliseconds(20))
    echo.order = scheduled
    echo.echoOf = workers[worker]?.directives
    pending.append(echo)
  }

  private mutating func apply(_ event: Event, to worker: WorkerID) {
    switch event {
    case .launched:
      workers[worker]?.body = .running
      workers[worker]?.footprint = .kilobytes(random.pick([100, 3_000, 20_000, 60_000]))
      if random.chance(90) { schedule(.ready(worker), of: worker, upTo: .seconds(3)) }
    case .shedFinished(_, _, let after): workers[worker]?.footprint = after
    case .suspended: workers[worker]?.body = .stopped
    case .hibernated(_, let result):
      workers[worker]?.body = .evicted
      workers[worker]?.beforeEviction = result.footprintBefore
      workers[worker]?.footprint = result.footprintAfter
      workers[worker]?.swapped = .zero
    case .resumeFailed(_, _, let intact): if !intact { workers[worker]?.isUnverifiable = true }
    case .resumed:
      if workers[worker]?.body == .evicted, let footprint = workers[worker]?.beforeEviction {
        workers[worker]?.footprint = footprint
      }
      workers[worker]?.body = .running
    case .purged(_, let freed):
      let footprint = workers[worker]?.footprint ?? .zero
      workers[worker]?.footprint = max(.zero, footprint - freed)
      workers[worker]?.purgeable = .zero
    case .purgeFailed: workers[worker]?.purgeable = .zero
    case .trimmed(_, let result):
      workers[worker]?.movingSince = nil
      workers[worker]?.footprint = result.residentAfter + result.swapped
      workers[worker]?.swapped = result.swapped
    case .filled(_, let swapped):
      workers[worker]?.movingSince = nil
      workers[worker]?.swapped = swapped
    case .trimFailed, .fillFailed: workers[worker]?.movingSince = nil
    case .launchFailed, .exited:
      workers[worker]?.purgeable = .zero
      workers[worker]?.body = .absent
      workers[worker]?.footprint = .zero
      workers[worker]?.swapped = .zero
      workers[worker]?.isShedding = false
      workers[worker]?.movingSince = nil
      workers[worker]?.isUnverifiable = false
    default: break
    }
  }
}

extension Event {
  var isExit: Bool { if case .exited = self { true } else { false } }
}

extension Directive {
  /// The worker that the directive concerns.
  var worker: WorkerID? {
    switch self {
    case .launch(let worker), .shed(let worker, _, _), .finishShed(let worker),
      .expireTask(let worker, _), .suspend(let worker), .hibernate(let worker),
      .resume(let worker), .terminate(let worker), .kill(let worker), .measure(let worker),
      .checkSafePoint(let worker), .purge(let worker), .inspect(let worker), .abort(let worker),
      .checkWatchdog(let worker), .trim(let worker), .fill(let worker):
      worker
    case .answer, .transition, .pressureChanged, .report, .wouldHave, .watchdogMissed,
      .overLimit, .leakSuspected, .willTerminate, .willNotTerminate,
      .protectedLeft, .terminatesNone:
      nil
    }
  }
}
