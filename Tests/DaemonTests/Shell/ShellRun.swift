import Hibernation
import Lifecycle
import Policy
import Simulation
import Supervision

@testable import Daemon

/// One run of a simulated worker: what its process and memory really are, and the mechanics that act on them,
/// with every fault that other threads, disks and kernels have. It complains of what must never be asked for.
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
  private unowned let world: ShellWorld
  private(set) var body = Body.running
  var hasEnded: Bool { ending.hasExited }
  private(set) var status = ExitStatus.exited(0)
  private(set) lazy var ending: WorkerEnding = {
    let end = ShellEnd(self, world, children: world.pick([0, 0, 1, 3]))
    return WorkerEnding(timers: world.clock, mechanics: end, host: end)
  }()
  private(set) var isUnderWay = false
  var sleep: WorkerSleep?
  let process: WorkerProcess
  /// It never answers its probe well.
  let isSick: Bool

  init(_ id: WorkerID, _ world: ShellWorld) {
    self.id = id
    self.world = world
    process = world.processes.next()
    isSick = world.chance(10)
  }

  private func complain(_ text: String) { world.complain("\(id): \(text) (\(body.rawValue))") }

  // MARK: mechanics

  /// The effect comes after a while, and its outcome when it has; or it is lost, late, or twice.
  private func operate<Outcome>(
    _ effect: @escaping () -> Outcome, _ then: @escaping (Outcome) -> Void
  ) {
    if isUnderWay { complain("two operations at once") }
    isUnderWay = true
    world.after(.milliseconds(300), rarely: .seconds(200)) { [self] in
      let outcome = effect()
      isUnderWay = false
      world.report(late: .seconds(150), twice: .seconds(60)) { then(outcome) }
    }
  }

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
    if case .hibernated = expecting, body != .evicted, body != .dead, body != .unverifiable {
      complain("recovered from an image that it doesn't have")
    }
    operate(
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
    switch body {
    case .dead: return .failure(failure(.vanished))
    case .unverifiable: return .failure(failure(.unverifiable))
    case .running, .stopped, .evicted: break
    }
    if let aftermath = fault(unverifiable: 3) { return .failure(failure(aftermath)) }
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

  func fallsAsleep() { isWatched = true }
  private(set) var isWatched = false

  func isSuspended() {
    if world.chance(5) { world.driver.send(.wakeNeeded(id, "data that came as it fell asleep")) }
  }

  func isAwake(why: String?, fromImage: Bool) {
    if why == nil { isWatched = false }
    if body != .running, body != .dead { complain("is said to be awake") }
  }

  func staysAsleep() {
    if world.chance(50) { world.driver.send(.wakeNeeded(id, "what still waits for it")) }
  }

  func kill() { ending.kill() }

  func operationHasEnded() { if hasEnded { ending.rootHasEnded() } }

  func log(_ priority: DaemonLog.Priority, _ text: String) {}

  // MARK: its end

  func die(_ status: ExitStatus) {
    guard body != .dead else { return }
    body = .dead
    self.status = status
    // The loop hears of it a moment later.
    world.after(.milliseconds(100)) { [self] in ending.rootHasEnded() }
  }
}
