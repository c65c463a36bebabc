import Hibernation
import Lifecycle
import Supervision

@testable import Daemon

/// One run of a simulated worker: the real state of its process and memory.
final class ShellRun {
  enum Body: String {
    case running, stopped
    /// The process's memory is in its image.
    case evicted
    /// Half of the memory is restored, so the process must not run.
    case unverifiable
    case dead
  }

  let id: WorkerID
  /// The pid in the workers' records.
  private(set) var number: Int32
  /// Whether another supervisor has started it.
  let isExternal: Bool
  unowned let world: ShellWorld
  var body = Body.running
  /// Whether the run is over, or the daemon has learned that its root process has ended.
  var hasEnded: Bool { unit?.hasExited != false }
  private(set) var exit = WorkerExit.exited(0)
  /// Whether the registry has had its worker.
  var wasRegistered = false
  /// What was done to the run at its end.
  var deeds: ShellEnd.Deeds
  /// The number of processes that the root process has started. They outlive it, unless something
  /// ends them.
  var children: Int
  /// The memory that is in the image of a trim. nil: it wasn't trimmed so.
  var missing: MissingBytes?
  /// The operation on its memory.
  var operation: OperationFlag?
  var isUnderWay: Bool { operation?.isRunning == true }
  private var unit: WorkerUnit? { world.run(of: id) === self ? world.workers[id] : nil }
  var sleep: WorkerSleep? { unit?.sleep }
  /// The inputs while the worker sleeps.
  private(set) var inputs: FakeInputs?
  private(set) var process: WorkerProcess
  private var lastBody = Body.running
  /// Whether the worker always fails its probe.
  let isSick: Bool

  init(_ id: WorkerID, _ world: ShellWorld, isExternal: Bool = false) {
    self.id = id
    self.world = world
    self.isExternal = isExternal
    process = world.processes.next(isFrozenAsleep: world.hasFreezer)
    number = world.processes.count
    isSick = world.chance(10)
    children = world.pick([0, 0, 1, 3])
    deeds = ShellEnd.Deeds(isStubborn: world.chance(20))
  }

  /// Makes the run of the same process under the next daemon. The effects of operations that
  /// weren't complete don't happen.
  init(_ old: ShellRun, after world: ShellWorld) {
    id = old.id
    self.world = world
    isExternal = old.isExternal
    process = world.processes.next(isFrozenAsleep: world.hasFreezer)
    number = old.number
    isSick = old.isSick
    children = old.children
    body = old.body
    missing = old.missing
    exit = old.exit
    deeds = ShellEnd.Deeds(isStubborn: old.deeds.isStubborn)
  }

  func begin() { if body == .dead { reportDeath() } }

  /// Whether another process of the cgroup can replace the root process.
  var hasSuccessor: Bool { isExternal && body == .dead && lastBody == .running }

  /// Replaces the root process by another one of the cgroup. Returns false if none is left.
  func replaceBySuccessor() -> Bool {
    guard hasSuccessor else { return false }
    (body, children, process) = (
      .running, 0, world.processes.next(isFrozenAsleep: world.hasFreezer)
    )
    number = world.processes.count
    deeds = ShellEnd.Deeds(isStubborn: deeds.isStubborn)
    return true
  }

  func complain(_ text: String) { world.complain("\(id): \(text) (\(body.rawValue))") }

  // MARK: sleep

  /// Lets input arrive for the sleeping worker.
  func arrive(_ what: String) {
    guard body == .stopped || body == .evicted, let inputs, isWatched else { return }
    world.count("arrival seen")
    inputs.arrive(what)
    world.clock.fire(inputs.descriptor)
  }

  var isWatched: Bool { unit?.wakeWatch?.isWatching == true }

  /// Makes the inputs that can wake the worker. It is stopped.
  func makeInputs() -> FakeInputs {
    let next = world.processes.nextInputs()
    next.waiting = world.chance(5) ? "data that came as it fell asleep" : nil
    inputs = next
    return next
  }

  /// Whether its supervisor has it again.
  var didRelease: Bool { isExternal && world.run(of: id) !== self && body != .dead }

  func kill() {
    switch body {
    case .running, .stopped, .evicted:
      if sleep?.isMemoryUnverified == true { complain("is killed though its memory is intact") }
    case .unverifiable, .dead: break
    }
    world.ends.kill(id)
  }

  // MARK: end

  func die(_ exit: WorkerExit) {
    guard body != .dead else { return }
    lastBody = body
    body = .dead
    self.exit = exit
    reportDeath()
  }

  private func reportDeath() {
    // The loop is informed a moment later.
    world.after(.milliseconds(100)) { [self, world] in world.clock.fire(process.pidfd) }
  }
}
