import Lifecycle
import Policy

@testable import Daemon

/// The real `WorkerLauncher` over simulated launches, and the children that are no workers yet.
final class ShellLaunching: LaunchHost {
  private unowned let world: ShellWorld
  private(set) lazy var launcher = WorkerLauncher(
    driver: world.driver, timers: world.clock, host: self)
  /// Between fork and the program.
  private var children: [ShellRun] = []

  init(_ world: ShellWorld) { self.world = world }

  /// What must not be there any more in the end.
  var remains: String? {
    if let child = children.first { return "a child of \(child.id) is left" }
    return world.names.first(where: launcher.isLaunching).map { "the launch of \($0) hasn't ended" }
  }

  /// As `Leftovers` finds it.
  func hasChild(_ id: WorkerID) -> Bool { children.contains { $0.id == id } }

  func fork(_ id: WorkerID) -> ShellRun {
    if hasChild(id) || world.hasRun(id) { world.complain("\(id) has two processes") }
    let child = ShellRun(id, world)
    children.append(child)
    return child
  }

  func attach(_ child: ShellRun) {
    kill(child)
    world.attach(child)
  }

  func kill(_ child: ShellRun) { children.removeAll { $0 === child } }

  // MARK: the launcher's host

  func mechanics(ofLaunching id: WorkerID) -> (any LaunchMechanics)? {
    if world.hasRun(id) { world.complain("\(id) is launched, and runs") }
    if world.isClosing { world.complain("\(id) is launched while the daemon ends") }
    return ShellLaunch(id, world, self)
  }

  func obstacle(toLaunching id: WorkerID) -> String? { nil }

  func programRuns(_ id: WorkerID) { world.save() }

  func hasLaunched(_ id: WorkerID) { world.hasLaunched(id) }

  func launchHasFailed(_ id: WorkerID) {
    if world.hasRun(id) { world.complain("\(id) couldn't be launched, and runs") }
  }

  func log(_ id: WorkerID, _ text: String) { world.count("undoOverdue") }
}

/// One simulated launch, whose steps lag, fail, and have outcomes that are late, lost or come twice.
final class ShellLaunch: LaunchMechanics {
  private let id: WorkerID
  private unowned let world: ShellWorld
  private unowned let launching: ShellLaunching
  private var child: ShellRun?
  private var isUndone = false

  init(_ id: WorkerID, _ world: ShellWorld, _ launching: ShellLaunching) {
    self.id = id
    self.world = world
    self.launching = launching
  }

  let steps = LaunchStep.allCases
  /// No worker is removed in this world.
  let isWanted = true
  let pid: Int32? = nil

  func perform(_ step: LaunchStep, within limit: Duration, then: @escaping (String?) -> Void) {
    if isUndone { world.complain("\(id): its launch continues after it was undone") }
    world.after(.milliseconds(10), rarely: .seconds(40)) { [self] in
      let refusal = world.chance(1) ? "a fault of the simulation" : effect(of: step)
      // The loop itself sees that the program runs, and can't lose that.
      switch step == .program ? .reported : world.fate() {
      case .reported: end(step, refusal, then)
      case .late: world.after(.seconds(40)) { [self] in end(step, refusal, then) }
      case .lost: break
      case .twice:
        end(step, refusal, then)
        world.after(.seconds(5)) { then(refusal) }
      }
      if isUndone { takeAway() }
    }
  }

  /// On another thread, which may not know yet that the launch was given up.
  private func effect(of step: LaunchStep) -> String? {
    if step == .terms, launching.hasChild(id) {
      return "1 process of an earlier instance still runs"
    }
    if step == .fork, !isUndone { child = launching.fork(id) }
    return nil
  }

  /// On the loop.
  private func end(_ step: LaunchStep, _ refusal: String?, _ then: (String?) -> Void) {
    if step == .program, refusal == nil, !isUndone, let child {
      self.child = nil
      launching.attach(child)
    }
    then(refusal)
  }

  func undo(then: @escaping () -> Void) {
    if isUndone { world.complain("\(id): its launch is undone twice") }
    isUndone = true
    world.count("undone")
    world.after(.milliseconds(300), rarely: .seconds(90)) { [self] in
      takeAway()
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

  private func takeAway() {
    if let child { launching.kill(child) }
    child = nil
  }
}
