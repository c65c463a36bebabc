import Lifecycle

@testable import Daemon

/// The real `WorkerLauncher` over simulated launches, and the children that aren't workers yet.
final class ShellLaunching {
  private unowned let world: ShellWorld
  private(set) lazy var launcher = WorkerLauncher(
    driver: world.driver, workers: world.workers, timers: world.clock
  ) { [unowned self] in makeLaunch($0) }
  /// Children between fork and execve.
  private var children: [ShellRun] = []

  init(_ world: ShellWorld) { self.world = world }

  /// A child that should have been removed; nil: none. When the daemon ends, an overdue `undo` may
  /// have left a child: the kernel ends it with the daemon, because its parent-death signal is set
  /// until it executes the program.
  var leftChild: String? { children.first.map { "a child of \($0.id) is left" } }

  /// A launch that should have ended before the daemon; nil: none.
  var unfinished: String? {
    world.workers.launching.first
      .map { id in
        "the launch of \(id) hasn't ended (\(world.driver.state.state(of: id)?.rawValue ?? "-"))"
      }
  }

  /// Whether the worker has a child that isn't a worker yet, as `Leftovers` would find it.
  func hasChild(_ id: WorkerID) -> Bool { children.contains { $0.id == id } }

  func fork(_ id: WorkerID) -> ShellRun {
    if hasChild(id) || world.hasRun(id) { world.complain("\(id) has two processes") }
    let child = ShellRun(id, world)
    children.append(child)
    return child
  }

  func attach(_ child: ShellRun, to worker: WorkerUnit) throws {
    kill(child)
    try world.runs.attach(child, to: worker)
  }

  func kill(_ child: ShellRun) { children.removeAll { $0 === child } }

  private func makeLaunch(_ id: WorkerID) -> ShellLaunch? {
    if world.hasRun(id) { world.complain("\(id) is launched, and runs") }
    if world.phase.isEnding { world.complain("\(id) is launched while the daemon ends") }
    return world.workers[id].map { ShellLaunch($0, world, self) }
  }
}

/// One simulated launch. Its steps are slow or fail, and their outcomes are late, lost or reported
/// twice.
final class ShellLaunch: Launch {
  private let worker: WorkerUnit
  private var id: WorkerID { worker.id }
  private unowned let world: ShellWorld
  private unowned let launching: ShellLaunching
  private var child: ShellRun?
  private var isUndone = false

  init(_ worker: WorkerUnit, _ world: ShellWorld, _ launching: ShellLaunching) {
    self.worker = worker
    self.world = world
    self.launching = launching
  }

  var obstacle: String? {
    world.survivors.holds(id) ? "its process from an earlier daemon still runs" : nil
  }
  let steps = LaunchStep.allCases
  var isWanted: Bool { world.workers[id] === worker }
  let pid: Int32? = nil

  func perform(_ step: LaunchStep, within limit: Duration, then: @escaping (String?) -> Void) {
    if isUndone { world.complain("\(id): its launch continues after it was undone") }
    world.after(.milliseconds(10), rarely: .seconds(40)) { [self] in
      let refusal = world.chance(1) ? "a fault of the simulation" : effect(of: step)
      // The loop itself detects that the program runs, so that outcome can't be lost.
      switch step == .program ? .reported : world.fate() {
      case .reported: end(step, refusal, then)
      case .late: world.after(.seconds(40)) { [self] in end(step, refusal, then) }
      case .lost: break
      case .twice:
        end(step, refusal, then)
        world.after(.seconds(5)) { then(refusal) }
      }
      if isUndone { removeCreated() }
    }
  }

  /// Performs the effect of a step, as if on another thread, which may not know yet that the launch
  /// was given up.
  private func effect(of step: LaunchStep) -> String? {
    if step == .terms, launching.hasChild(id) || world.survivors.holds(id) {
      return "1 process of an earlier instance still runs"
    }
    if step == .fork, !isUndone { child = launching.fork(id) }
    return nil
  }

  /// Completes a step, as if on the loop.
  private func end(_ step: LaunchStep, _ refusal: String?, _ then: (String?) -> Void) {
    if step == .program, refusal == nil, !isUndone, let child {
      self.child = nil
      return then(failureText { try launching.attach(child, to: worker) })
    }
    then(refusal)
  }

  func undo(then: @escaping () -> Void) {
    if isUndone { world.complain("\(id): its launch is undone twice") }
    isUndone = true
    world.count("undone")
    world.after(.milliseconds(300), rarely: .seconds(90)) { [self] in
      removeCreated()
      switch world.fate() {
      case .reported: then()
      case .late: world.after(.seconds(60)) { then() }
      case .lost: break
      case .twice:
        then()
        world.after(.seconds(5)) { then() }
      }
    }
  }

  private func removeCreated() {
    if let child { launching.kill(child) }
    child = nil
  }

  func programDidStart() {
    guard let worker = world.workers[id] else { return }
    worker.recordLaunch()
    world.recordWriter.save(worker, state: .launching)
  }

  func didLaunch() { world.runs.didLaunch(id) }

  func didFail() {
    if world.hasRun(id) { world.complain("\(id) couldn't be launched, and runs") }
    world.runs.launchDidFail(id)
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) { world.count("undoOverdue") }
}
