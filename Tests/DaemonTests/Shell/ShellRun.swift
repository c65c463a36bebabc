import Hibernation
import Lifecycle
import Linux
import Policy
import PolicyFile
import Simulation
import Supervision

@testable import Daemon

/// One run of a simulated worker: what its process and memory really are, and the mechanics that act on them,
/// with the faults of threads, disks and kernels. It complains of what must never be asked for.
final class ShellRun: SleepMechanics, SleepHost {
  enum Body: String {
    case running, stopped
    /// Its memory is in its image.
    case evicted
    /// Half of its memory is back: it must not run.
    case unverifiable
    case dead
  }

  let id: WorkerID
  /// Its pid, for the workers' records.
  private(set) var number: Int32
  /// Another supervisor's.
  let isExternal: Bool
  unowned let world: ShellWorld
  private(set) var body = Body.running
  var hasEnded: Bool { ending?.hasExited ?? true }
  private(set) var status = ExitStatus.exited(0)
  /// Processes that the root process has started. They outlive it, unless something ends them.
  var children: Int
  private(set) var isUnderWay = false
  private(set) weak var sleep: WorkerSleep?
  private(set) weak var wakeWatch: WakeWatch?
  private(set) weak var ending: WorkerEnding?
  /// While it sleeps.
  private(set) var inputs: FakeInputs?
  private(set) var process: WorkerProcess
  private var lastBody = Body.running
  /// It never answers its probe well.
  let isSick: Bool

  init(_ id: WorkerID, _ world: ShellWorld, isExternal: Bool = false) {
    self.id = id
    self.world = world
    self.isExternal = isExternal
    process = world.processes.next(isFrozenAsleep: world.hasFreezer)
    number = world.processes.count
    isSick = world.chance(10)
    children = world.pick([0, 0, 1, 3])
  }

  /// The same process under the next daemon: what an operation hadn't done yet, isn't done.
  init(_ old: ShellRun, after world: ShellWorld) {
    id = old.id
    self.world = world
    isExternal = old.isExternal
    process = world.processes.next(isFrozenAsleep: world.hasFreezer)
    number = old.number
    isSick = old.isSick
    children = old.children
    body = old.body
    status = old.status
  }

  func makeEnding(for runtime: WorkerUnit) {
    let end = ShellEnd(self, world)
    runtime.ending = WorkerEnding(timers: world.clock, mechanics: end, host: end)
    ending = runtime.ending
  }

  func makeSleep(for runtime: WorkerUnit) {
    let watch = WakeWatch(id, watches: world.clock, timers: world.clock, host: self)
    let sleep = WorkerSleep(
      id, driver: world.driver, clock: world.clock, mechanics: self, host: self)
    (runtime.wakeWatch, runtime.sleep) = (watch, sleep)
    (wakeWatch, self.sleep) = (watch, sleep)
  }

  func begin() { if body == .dead { reportDeath() } }

  /// Another process of its group stands for it; false: none is left.
  func takeSuccessor() -> Bool {
    guard body == .dead, lastBody == .running else { return false }
    (body, children, process) = (
      .running, 0, world.processes.next(isFrozenAsleep: world.hasFreezer)
    )
    number = world.processes.count
    return true
  }

  func complain(_ text: String) { world.complain("\(id): \(text) (\(body.rawValue))") }

  // MARK: mechanics

  /// The effect comes after a while, and its outcome when it has; or it is lost, late, or twice.
  ///
  /// - Parameter isReported: its outcome comes.
  private func operate<Outcome>(
    isReported: Bool = false, _ effect: @escaping () -> Outcome,
    _ then: @escaping (Outcome) -> Void
  ) {
    if isUnderWay { complain("two operations at once") }
    if wasReleased { complain("is worked on after its release") }
    isUnderWay = true
    world.after(.milliseconds(300), rarely: .seconds(120)) { [self] in
      let outcome = effect()
      isUnderWay = false
      if isReported { return then(outcome) }
      world.report(late: .seconds(100), twice: .seconds(60)) { then(outcome) }
    }
  }

  /// Its supervisor has it again.
  var wasReleased: Bool { isExternal && world.run(of: id) !== self && body != .dead }

  func suspend(isRestoring: Bool, then: @escaping (Result<Void, Refusal>) -> Void) {
    if body != .running, body != .dead { complain("suspended") }
    world.liveness.willStop(self)
    operate(
      { [self] in
        guard body == .running, !world.chance(10) else {
          return .failure(Refusal(text: "a child escaped"))
        }
        body = .stopped
        if world.chance(4) {
          world.count("still stopped")
          return .failure(Refusal(text: "it is at work", stillStopped: "a thread doesn't go on"))
        }
        return .success(())
      }, then)
  }

  func hibernate(then: @escaping (Result<HibernationOutcome, HibernationError>) -> Void) {
    if body != .stopped, body != .dead { complain("hibernated") }
    operate(
      { [self] in
        if body == .dead { return .failure(failure(.vanished)) }
        if let aftermath = fault(unverifiable: 2) { return .failure(failure(aftermath)) }
        body = .evicted
        world.images.insert(id)
        return .success(
          HibernationOutcome(
            image: ImageOnDisk(path: "/\(id)"),
            result: HibernationResult(
              footprintBefore: .megabytes(10), footprintAfter: .kilobytes(8),
              imageSize: .megabytes(2), duration: .milliseconds(50))))
      }, then)
  }

  func thaw(isStopped: Bool, then: @escaping (String?) -> Void) {
    if body != .stopped, body != .dead { complain("thawed") }
    operate(
      { [self] in
        guard body == .stopped, !world.chance(8) else { return "a thread doesn't go on" }
        body = .running
        return nil
      }, then)
  }

  func restore(
    from image: ImageOnDisk, then: @escaping (Result<ResumeOutcome, HibernationError>) -> Void
  ) {
    if body != .evicted, body != .dead { complain("restored") }
    operate({ [self] in bringBack() }, then)
  }

  func recover(expecting: ImageExpectation, then: @escaping (RecoveryOutcome) -> Void) {
    recover(expecting: expecting, isReported: false, then: then)
  }

  func recover(
    expecting: ImageExpectation, isReported: Bool,
    then: @escaping (RecoveryOutcome) -> Void
  ) {
    if case .hibernated = expecting, body != .evicted, body != .dead, body != .unverifiable {
      complain("recovered from an image that it doesn't have")
    }
    operate(
      isReported: isReported,
      { [self] in
        let result = body == .running ? .success(ResumeOutcome()) : bringBack()
        let image = body == .evicted ? ImageOnDisk(path: "/\(id)") : nil
        return RecoveryOutcome(result: result, image: image)
      }, then)
  }

  func look(then: @escaping (WorkerState?, ImageOnDisk?) -> Void) {
    let effect = { [self] () -> (WorkerState?, ImageOnDisk?) in
      switch body {
      case .stopped: (.suspended, nil)
      case .evicted: (.hibernated, ImageOnDisk(path: "/\(id)"))
      case .running, .unverifiable, .dead: (nil, nil)
      }
    }
    operate(effect) { then($0.0, $0.1) }
  }

  private func bringBack() -> Result<ResumeOutcome, HibernationError> {
    // Its record is on the disk before its memory moves.
    world.saved.drain()
    switch body {
    case .dead: return .failure(failure(.vanished))
    case .unverifiable: return .failure(failure(.unverifiable))
    case .running, .stopped, .evicted: break
    }
    if body == .evicted, !world.images.contains(id) {
      complain("its image has been removed, and held all of its memory")
    }
    if let aftermath = fault(unverifiable: 3) { return .failure(failure(aftermath)) }
    world.images.remove(id)
    if world.chance(3) {
      // Its memory is back, and it can't be woken.
      body = .stopped
      return .failure(HibernationError(.waking, "a thread doesn't go on"))
    }
    body = .running
    return .success(ResumeOutcome())
  }

  private func fault(unverifiable share: Int) -> HibernationError.Aftermath? {
    if world.chance(6) { return .intact }
    if world.chance(share) {
      body = .unverifiable
      return .unverifiable
    }
    if world.chance(2) {
      die(.signaled(11))
      return .vanished
    }
    return nil
  }

  private func failure(_ aftermath: HibernationError.Aftermath) -> HibernationError {
    HibernationError(.writingBack, "a fault of the simulation", aftermath: aftermath)
  }

  // MARK: host

  var mayBegin: Bool { !hasEnded }

  func whenReadyToSuspend(then: @escaping () -> Void) {
    guard let runtime = world.workers[id] else { return }
    world.liveness.supervisor.whenUnasked(runtime) { [self] in
      if world.chance(50) { return then() }
      world.after(.milliseconds(250)) { [self] in
        if !hasEnded, world.driver.state.state(of: id) == .suspending { then() }
      }
    }
  }

  func fallsAsleep() {
    let inputs = world.processes.nextInputs()
    inputs.waiting = world.chance(5) ? "data that came as it fell asleep" : nil
    self.inputs = inputs
    wakeWatch?.listen(at: .success(inputs) as Result<FakeInputs, SystemCallError>)
    if world.chance(20) {
      wakeWatch?.timer.set(at: world.clock.now + .seconds(world.pick([0, 5, 90])), "its own timer")
    }
  }

  var isWatched: Bool { wakeWatch?.isWatching == true }

  func isSuspended() { wakeWatch?.wakeForWhatWaits() }

  func isAwake(why: String?, fromImage: Bool) {
    if body != .running, body != .dead { complain("is said to be awake") }
    if why == nil { wakeWatch?.stop() }
  }

  func staysAsleep() { wakeWatch?.repeatCall() }

  func kill() {
    switch body {
    case .running, .stopped, .evicted:
      if sleep?.isMemoryUnverified == true { complain("is killed though its memory is intact") }
    case .unverifiable, .dead: break
    }
    ending?.kill()
  }

  func operationHasEnded() { if hasEnded { ending?.rootHasEnded() } }

  func log(_ priority: DaemonLog.Priority, _ text: String) {}

  // MARK: its end

  func die(_ status: ExitStatus) {
    guard body != .dead else { return }
    lastBody = body
    body = .dead
    self.status = status
    reportDeath()
  }

  private func reportDeath() {
    // The loop hears of it a moment later.
    world.after(.milliseconds(100)) { [self, world] in world.clock.becomesReadable(process.pidfd) }
  }
}
