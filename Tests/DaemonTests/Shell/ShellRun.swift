import Lifecycle
import Policy
import Supervision

@testable import Daemon

/// One run of a simulated worker: what its process and memory really are.
final class ShellRun {
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
  var body = Body.running
  /// It is over, or its root process has ended and the daemon has noticed it.
  var hasEnded: Bool { unit?.hasExited != false }
  private(set) var exit = WorkerExit.exited(0)
  /// Its worker is known.
  var isKnown = false
  /// At its end.
  var deeds: ShellEnd.Deeds
  /// Processes that the root process has started. They outlive it, unless something ends them.
  var children: Int
  /// What acts on its memory.
  var underway: Underway?
  var isUnderWay: Bool { underway?.isTrue == true }
  private var unit: WorkerUnit? { world.run(of: id) === self ? world.workers[id] : nil }
  var sleep: WorkerSleep? { unit?.sleep }
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
    deeds = ShellEnd.Deeds(isStubborn: world.chance(20))
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
    exit = old.exit
    deeds = ShellEnd.Deeds(isStubborn: old.deeds.isStubborn)
  }

  func begin() { if body == .dead { reportDeath() } }

  /// Another process of its group can stand for it.
  var hasSuccessor: Bool { isExternal && body == .dead && lastBody == .running }

  /// Another process of its group stands for it; false: none is left.
  func takeSuccessor() -> Bool {
    guard hasSuccessor else { return false }
    (body, children, process) = (
      .running, 0, world.processes.next(isFrozenAsleep: world.hasFreezer)
    )
    number = world.processes.count
    deeds = ShellEnd.Deeds(isStubborn: deeds.isStubborn)
    return true
  }

  func complain(_ text: String) { world.complain("\(id): \(text) (\(body.rawValue))") }

  // MARK: its sleep

  /// Something comes for it.
  func arrive(_ what: String) {
    guard body == .stopped || body == .evicted, let inputs, isWatched else { return }
    world.count("arrival seen")
    inputs.arrive(what)
    world.clock.becomesReadable(inputs.descriptor)
  }

  var isWatched: Bool { unit?.wakeWatch?.isWatching == true }

  /// It is stopped: what can wake it.
  func makeInputs() -> FakeInputs {
    let next = world.processes.nextInputs()
    next.waiting = world.chance(5) ? "data that came as it fell asleep" : nil
    inputs = next
    return next
  }

  /// Its supervisor has it again.
  var wasReleased: Bool { isExternal && world.run(of: id) !== self && body != .dead }

  func kill() {
    switch body {
    case .running, .stopped, .evicted:
      if sleep?.isMemoryUnverified == true { complain("is killed though its memory is intact") }
    case .unverifiable, .dead: break
    }
    world.ends.kill(id)
  }

  // MARK: its end

  func die(_ exit: WorkerExit) {
    guard body != .dead else { return }
    lastBody = body
    body = .dead
    self.exit = exit
    reportDeath()
  }

  private func reportDeath() {
    // The loop hears of it a moment later.
    world.after(.milliseconds(100)) { [self, world] in world.clock.becomesReadable(process.pidfd) }
  }
}
