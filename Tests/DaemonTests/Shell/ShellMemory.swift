import Glibc
import Lifecycle
import Linux
import Supervision

@testable import Daemon
@testable import Hibernation

/// Acts on the processes and the memory of simulated workers, with the faults of threads, disks and
/// kernels. It reports an error if an operation is requested that must never be.
final class ShellMemory: WorkerMemory {
  unowned let world: ShellWorld

  init(_ world: ShellWorld) { self.world = world }

  /// Performs an operation: its effect happens after a while, and then its outcome is reported, or
  /// is lost, late, or reported twice.
  ///
  /// - Parameters:
  ///   - bodies: the states in which the operation may be requested; a dead process is always
  ///     possible.
  ///   - isReported: the outcome is never lost.
  func operate<Outcome>(
    _ what: String, on name: String, in bodies: Set<ShellRun.Body>? = nil,
    isReported: Bool = false, _ effect: @escaping (ShellRun) -> Outcome,
    _ then: @escaping (Outcome) -> Void
  ) -> OperationFlag {
    let operation = OperationFlag()
    guard let run = world.run(of: WorkerID(name)) else {
      world.complain("\(name) is \(what), and has no run")
      return operation
    }
    if let bodies, !bodies.contains(run.body), run.body != .dead { run.complain(what) }
    if run.isUnderWay { run.complain("two operations at once") }
    run.operation = operation
    world.after(.milliseconds(300), rarely: .seconds(120)) { [unowned world] in
      let outcome = effect(run)
      operation.end()
      if isReported { return then(outcome) }
      world.report(late: .seconds(100), twice: .seconds(60)) { then(outcome) }
    }
    return operation
  }

  func suspend(
    _ job: SuspendJob, missing: MissingBytes?, then: @escaping (SuspensionOutcome) -> Void
  ) -> OperationFlag {
    let name = job.target.name
    if let run = world.run(of: WorkerID(name)) { world.liveness.willStop(run) }
    return operate(
      "suspended", on: name, in: [.running],
      { [self] run in
        if run.isImageNeeded, missing == nil {
          run.complain("a thread may wait for a missing page")
        }
        if world.chance(20) { run.emptyTrimImage() }
        return SuspensionOutcome(result: stop(run, job))
      }, then)
  }

  private func stop(_ run: ShellRun, _ job: SuspendJob) -> Result<Asleep, Refusal> {
    guard run.body == .running, !world.chance(10) else {
      return .failure(Refusal(text: "a child escaped"))
    }
    if job.mustBeIdle, job.staysAwakeBelow != nil, world.chance(10) {
      return .failure(Refusal(text: "it works by its own timer", staysAwake: true))
    }
    run.body = .stopped
    if world.chance(4) {
      world.count("still stopped")
      return .failure(Refusal(text: "it is at work", stillStopped: "a thread doesn't go on"))
    }
    var asleep = Asleep(sources: .success(run.makeInputs()))
    if run.isImageNeeded {
      world.count("suspended, trimmed")
      asleep.missing = run.missing
    }
    if world.chance(20) {
      let delay = Duration.seconds(world.pick([0, 5, 90]))
      asleep.times = [DueTime(source: .timer, remaining: delay, whole: .seconds(90))]
    }
    return .success(asleep)
  }

  func hibernate(_ order: HibernationOrder, then: @escaping (HibernationOutcome) -> Void)
    -> OperationFlag
  {
    operate(
      "hibernated", on: order.target.name, in: [.stopped],
      { [self] in
        HibernationOutcome(result: evict($0), before: .megabytes(10), after: .kilobytes(8))
      }, then)
  }

  private func evict(_ run: ShellRun) -> Result<HibernationSummary, HibernationError> {
    if run.body == .dead { return .failure(failure(.vanished)) }
    if let aftermath = fault(run, unverifiable: 2) { return .failure(failure(aftermath)) }
    run.body = .evicted
    run.missing = nil
    world.images.insert(run.id)
    return .success(.forTest("/\(run.id)", length: 2 << 20))
  }

  func thaw(
    _ target: HibernationTarget, isStopped: Bool, missing: MissingBytes?,
    then: @escaping (String?) -> Void
  ) -> OperationFlag {
    operate(
      "thawed", on: target.name, in: [.stopped],
      { [unowned world] run in
        guard run.body == .stopped, !world.chance(8) else { return "a thread doesn't go on" }
        run.body = .running
        return nil
      }, then)
  }

  func restore(
    _ target: HibernationTarget, from image: ImageOnDisk, keepsBase: Bool,
    then: @escaping (Result<ResumeSummary, HibernationError>) -> Void
  ) -> OperationFlag {
    operate("restored", on: target.name, in: [.evicted], { [self] in bringBack($0) }, then)
  }

  func recover(
    _ target: HibernationTarget, expecting: ImageExpectation,
    then: @escaping (RecoveryOutcome) -> Void
  ) -> OperationFlag {
    // The engine doesn't know the worker yet, so it can't ask for an outcome that is lost.
    let isReported = world.returning.isAdopting(WorkerID(target.name))
    var bodies: Set<ShellRun.Body>?
    if case .hibernated = expecting { bodies = [.evicted, .unverifiable] }
    return operate(
      "recovered from an image that it doesn't have", on: target.name, in: bodies,
      isReported: isReported,
      { [self] run in
        run.emptyTrimImage()
        let result = run.body == .running ? .success(.forTest) : bringBack(run)
        if isReported, case .failure(let error) = result, error.aftermath == .intact {
          world.count("can't be woken yet")
        }
        let image = run.body == .evicted ? ImageOnDisk(path: "/\(run.id)") : nil
        return RecoveryOutcome(result: result, image: image)
      }, then)
  }

  func inspect(
    _ target: HibernationTarget, lastImage: ImageOnDisk?, then: @escaping (SurvivorState) -> Void
  ) -> OperationFlag {
    let effect = { (run: ShellRun) -> SurvivorState in
      switch run.body {
      case .stopped where run.isImageNeeded: .inDoubt
      case .stopped: .asleep(.suspended, nil)
      case .evicted: .asleep(.hibernated, ImageOnDisk(path: "/\(run.id)"))
      case .running, .unverifiable, .dead: .inDoubt
      }
    }
    return operate("looked at", on: target.name, effect, then)
  }

  func release(_ masters: PreforkMasters, of name: String) {}
  func prioritize(_ name: String) {}
  func dropIdleBases() {}

  func removeImage(
    of name: String, isUnreadableNeeded: Bool, then: (() -> Void)?
  ) -> @Sendable () -> Void {
    world.runs.didClear(name)
    return {}
  }

  // MARK: workers that another daemon has started

  func openProcess(
    _ process: ProcessIdentity, _ plan: LaunchPlan
  ) throws(SystemCallError) -> WorkerProcess {
    if let run = world.runs.all.first(where: { $0.number == process.pid }) {
      guard run.replaceBySuccessor() else {
        throw SystemCallError("pidfd_open", on: plan.name, code: ESRCH)
      }
      world.count("followed by a successor")
      return run.process
    }
    let run =
      process.pid == ShellProcesses.stranger
      ? try world.externalHost.makeRun(plan.name) : try world.survivors.claim(plan.name, process)
    world.runs.beginAdopted(run)
    return run.process
  }

  /// The processes in the cgroup of a worker whose root process has ended.
  func tree(of process: WorkerProcess) -> ProcessTree {
    guard let run = world.runs.run(of: process), run.hasSuccessor, world.chance(30) else {
      return ProcessTree(processes: [])
    }
    return ProcessTree(processes: [world.processes.stat(run.number)])
  }
  func openMemories(of process: WorkerProcess) {}

  func survivorState(of target: HibernationTarget, by record: WorkerRecord) -> SurvivorState {
    world.run(of: WorkerID(target.name)).map { world.survivors.state($0, by: record) } ?? .inDoubt
  }

  func findInputs(
    of target: HibernationTarget, daemonSockets: Set<String>, answering ports: Set<UInt16>,
    then: @escaping (Result<any WakeInputs, SystemCallError>) -> Void
  ) -> OperationFlag {
    operate(
      "looked through", on: target.name, in: [.stopped, .evicted], isReported: true,
      { .success($0.makeInputs()) }, then)
  }

  func removeRemains(of record: WorkerRecord) { world.survivors.forget(record) }

  func removeOrphanedImages(except isRecorded: (String) -> Bool) {
    for id in world.images where !isRecorded(id.name) { world.images.remove(id) }
  }

  func serveUnadopted(except isManaged: (String) -> Bool) {}

  private func bringBack(_ run: ShellRun) -> Result<ResumeSummary, HibernationError> {
    // The worker's record is on the disk before its memory moves.
    world.saved.drain()
    switch run.body {
    case .dead: return .failure(failure(.vanished))
    case .unverifiable: return .failure(failure(.unverifiable))
    case .running, .stopped, .evicted: break
    }
    if run.body == .evicted, !world.images.contains(run.id) {
      run.complain("its image has been removed, and held all of its memory")
    }
    if let aftermath = fault(run, unverifiable: 3) { return .failure(failure(aftermath)) }
    world.images.remove(run.id)
    if world.chance(3) {
      // The memory is restored, but the worker can't be woken.
      run.body = .stopped
      return .failure(HibernationError(.waking, "a thread doesn't go on"))
    }
    run.body = .running
    return .success(.forTest)
  }

  private func fault(_ run: ShellRun, unverifiable share: Int) -> HibernationError.Aftermath? {
    if world.chance(6) { return .intact }
    if world.chance(share) {
      run.body = .unverifiable
      return .unverifiable
    }
    if world.chance(2) {
      run.die(.signaled(11))
      return .vanished
    }
    return nil
  }

  func failure(_ aftermath: HibernationError.Aftermath) -> HibernationError {
    HibernationError(.writingBack, "a fault of the simulation", aftermath: aftermath)
  }
}
