import Lifecycle
import Policy

/// Records that are kept independently of the engine's: the requests without an outcome, the
/// workers that were asked to end, and the memory that was reported.
struct Accounting {
  private var open: [OpenOperation: Instant] = [:]
  private var footprints: [WorkerID: ByteCount] = [:]
  /// How much of each footprint is in swap.
  private var swapped: [WorkerID: ByteCount] = [:]
  private var beforeHibernation: [WorkerID: ByteCount] = [:]
  private var now = Instant.zero
  /// Workers that the operator has asked to end.
  private var unwanted: Set<WorkerID> = []
  private var unverified: Set<WorkerID> = []
  /// The number of inspections in a row without an answer.
  private var inspections: [WorkerID: Int] = [:]

  /// A directive whose outcome hasn't come.
  private struct OpenOperation: Hashable {
    enum Kind {
      case launch, suspend, hibernate, resume, purge, trim, fill

      /// Whether the operation moves the memory of a running worker. The engine waits a minute for
      /// its outcome, and doesn't inspect the worker then.
      var isMove: Bool { self == .trim || self == .fill }
    }
    var kind: Kind
    var worker: WorkerID
  }

  /// Returns a complaint if a directive has had no outcome for longer than an operation may take. A
  /// recent directive, such as a heartbeat's, may be without one.
  func unanswered(at now: Instant) -> String? {
    open.first { !$0.key.kind.isMove && now > $0.value + Invariants.maxTransit }
      .map { "\($0.key.kind) of \($0.key.worker) never had an outcome" }
  }

  mutating func record(_ event: Event, _ states: [WorkerID: WorkerState], at now: Instant) {
    self.now = now
    switch event {
    case .request(let request) where request.verb == .stop || request.verb == .terminate:
      unwanted.insert(request.worker)
    case .launched(let worker): close(.launch, worker)
    case .suspended(let worker), .suspendFailed(let worker, _), .staysAwake(let worker, _):
      close(.suspend, worker)
    case .hibernateFailed(let worker, _, _): close(.hibernate, worker)
    case .resumeFailed(let worker, _, let intact):
      if !intact { unverified.insert(worker) }
      close(.resume, worker)
    case .found(let worker, let condition): recordInspection(worker, condition)
    case .launchFailed(let worker, _), .exited(let worker, _), .released(let worker):
      forget(worker)
    case .machineSlept(let time):
      for asked in open.keys where asked.kind.isMove { open[asked] = open[asked].map { $0 + time } }
    case .swapped, .trimmed, .trimFailed, .filled, .fillFailed: recordMove(event, states)
    default: recordMemory(event, states)
    }
    // Later outcomes don't count.
    open = open.filter { !$0.key.kind.isMove || now < $0.value + .seconds(60) }
  }

  private mutating func recordMove(_ event: Event, _ states: [WorkerID: WorkerState]) {
    switch event {
    case .swapped(let worker, let bytes):
      if states[worker]?.isAlive == true { swapped[worker] = bytes }
    case .trimmed(let worker, let result):
      guard close(.trim, worker) else { return }
      swapped[worker] = result.swapped
      footprints[worker] = result.residentAfter + result.swapped
    case .trimFailed(let worker, _, _): close(.trim, worker)
    case .filled(let worker, let bytes):
      guard close(.fill, worker) else { return }
      swapped[worker] = bytes
    case .fillFailed(let worker, _): close(.fill, worker)
    default: break
    }
  }

  /// Removes a directive that has an outcome. Returns false if the outcome came before, so that
  /// this is an echo.
  @discardableResult
  private mutating func close(_ kind: OpenOperation.Kind, _ worker: WorkerID) -> Bool {
    open.removeValue(forKey: OpenOperation(kind: kind, worker: worker)) != nil
  }

  private mutating func recordMemory(_ event: Event, _ states: [WorkerID: WorkerState]) {
    switch event {
    case .footprint(let worker, let size), .shedFinished(let worker, _, let size):
      if states[worker]?.isAlive == true { footprints[worker] = size }
    case .hibernated(let worker, let result):
      // An echo isn't a second hibernation.
      guard close(.hibernate, worker) else { return }
      footprints[worker] = result.footprintAfter
      beforeHibernation[worker] = result.footprintBefore
    case .resumed(let worker, _):
      guard close(.resume, worker) else { return }
      if let before = beforeHibernation.removeValue(forKey: worker) { footprints[worker] = before }
    case .purged(let worker, let freed):
      guard close(.purge, worker) else { return }
      footprints[worker] = max(.zero, (footprints[worker] ?? .zero) - freed)
    case .purgeFailed(let worker, _): close(.purge, worker)
    default: break
    }
  }

  /// Handles an inspection's result, which replaces the lost outcome.
  private mutating func recordInspection(_ worker: WorkerID, _ condition: WorkerCondition) {
    inspections[worker] = nil
    switch condition {
    case .underWay: return
    case .unverifiable: unverified.insert(worker)
    case .hibernated where open[OpenOperation(kind: .hibernate, worker: worker)] != nil:
      beforeHibernation[worker] = footprints[worker]
    case .running where open[OpenOperation(kind: .resume, worker: worker)] != nil:
      if let before = beforeHibernation.removeValue(forKey: worker) { footprints[worker] = before }
    case .running, .suspended, .hibernated: break
    }
    forgetOperations(of: worker)
  }

  private mutating func forgetOperations(of worker: WorkerID) {
    for kind in [OpenOperation.Kind.suspend, .hibernate, .resume] { close(kind, worker) }
  }

  private mutating func forget(_ worker: WorkerID) {
    inspections[worker] = nil
    open = open.filter { $0.key.worker != worker }
    footprints[worker] = nil
    swapped[worker] = nil
    beforeHibernation[worker] = nil
    unverified.remove(worker)
  }

  mutating func check(_ directive: Directive, _ states: [WorkerID: WorkerState]) -> String? {
    switch directive {
    case .launch(let worker): return ask(.launch, worker)
    case .suspend(let worker): return ask(.suspend, worker)
    case .hibernate(let worker): return ask(.hibernate, worker)
    case .resume(let worker): return ask(.resume, worker)
    case .purge(let worker): return ask(.purge, worker)
    case .trim(let worker), .fill(let worker):
      if states[worker] != .foreground && states[worker] != .background {
        return "\(directive) of a worker that doesn't run"
      }
      let isFree = !isMoving(worker)
      let kind: OpenOperation.Kind = if case .trim = directive { .trim } else { .fill }
      return isFree ? ask(kind, worker) : "\(directive) while its memory is being moved"
    case .inspect(let worker):
      inspections[worker, default: 0] += 1
      return states[worker]?.isTransit == true ? nil : "inspects \(worker), which is at rest"
    case .terminate(let worker), .kill(let worker), .abort(let worker):
      return states[worker] == .terminating ? nil : "\(directive) of a worker that is not ending"
    case .transition(let transition):
      if transition.to == .launching, transition.from == .terminated {
        unwanted.remove(transition.worker)
      }
      if transition.to == .terminating {
        forgetOperations(of: transition.worker)
        close(.trim, transition.worker)
        close(.fill, transition.worker)
      }
      if transition.to == .hibernated { swapped[transition.worker] = nil }
      if transition.to == .suspending, isMoving(transition.worker) {
        return "\(transition.worker) is suspended while its memory is being moved"
      }
      return transition.to == .terminating ? checkEnd(transition) : nil
    default: return nil
    }
  }

  private func isMoving(_ worker: WorkerID) -> Bool {
    open.keys.contains { $0.worker == worker && $0.kind.isMove }
  }

  private mutating func ask(_ kind: OpenOperation.Kind, _ worker: WorkerID) -> String? {
    open.updateValue(now, forKey: OpenOperation(kind: kind, worker: worker)) == nil
      ? nil : "\(kind) of \(worker) is asked for while it is under way"
  }

  /// Returns a complaint if a worker ends for another cause than pressure or its footprint (which
  /// are checked elsewhere), a watchdog, the operator, or lost memory.
  private func checkEnd(_ transition: Transition) -> String? {
    switch transition.cause {
    case .pressure, .footprint, .watchdog: return nil
    case .requested(.stop), .requested(.terminate):
      return unwanted.contains(transition.worker)
        ? nil : "\(transition.worker) was ended without a request"
    case .failed where unverified.contains(transition.worker): return nil
    case .failed where inspections[transition.worker] == TransitLimits.maxUnanswered: return nil
    default: return "\(transition.worker) was ended for an invalid reason: \(transition.cause)"
    }
  }

  /// Checks the memory of a simulated device: it is the device's size less the reported footprints
  /// of all workers with processes, without what is in swap.
  func check(_ engine: Engine, _ states: [WorkerID: WorkerState]) -> String? {
    guard case .device(let size) = engine.policy.memory else { return nil }
    let sum = states.reduce(ByteCount.zero) { sum, one in
      let resident = (footprints[one.key] ?? .zero) - (swapped[one.key] ?? .zero)
      return one.value.isAlive ? sum + max(.zero, resident) : sum
    }
    let available = max(.zero, size - sum)
    return available == engine.available
      ? nil : "\(engine.available) available; the accounts say \(available)"
  }
}
