import Glibc
import Lifecycle
import Policy

@testable import Daemon

/// The end of a simulated worker: the real `WorkerEnding`, over mechanics that lag and fail, and whose outcomes are
/// lost, late, or come twice. It complains of what must never be done.
final class ShellEnd: EndMechanics, EndHost {
  private unowned let run: ShellRun
  private unowned let world: ShellWorld
  private var children: Int {
    get { run.children }
    set { run.children = newValue }
  }
  /// No try to end what it leaves succeeds.
  private lazy var isStubborn = world.chance(20)
  /// When the first try to end them began.
  private var clearedAt = Instant.zero
  private var isReaped = false
  private var isOver = false
  /// When the SIGKILLs began that are under way.
  private var kills: [Instant] = []

  init(_ run: ShellRun, _ world: ShellWorld) {
    self.run = run
    self.world = world
  }

  private func complain(_ text: String) {
    world.complain("\(run.id): \(text) (\(run.body.rawValue), \(children) children)")
  }

  /// The effect comes after a while, and its outcome when it has.
  private func operate<Outcome>(
    _ most: Duration, _ effect: @escaping () -> Outcome, _ then: @escaping (Outcome) -> Void
  ) {
    // What acts on a run's processes may outlive the run.
    world.after(most, rarely: .seconds(40)) { [unowned world, run] in
      let outcome = withExtendedLifetime(run) { effect() }
      world.report(late: .seconds(100), twice: .seconds(60)) { then(outcome) }
    }
  }

  // MARK: mechanics

  let hasGroup = true

  func ask(by signal: Int32) {
    world.after(.milliseconds(50)) { [self, run] in withExtendedLifetime(run) { take() } }
  }

  /// A signal that asks it to end. A stopped process continues to handle it.
  private func take() {
    if children > 0, world.chance(70) { world.after(.seconds(1)) { [run] in run.children = 0 } }
    switch run.body {
    case .evicted: complain("sent SIGTERM without memory to run in")
    case .unverifiable, .dead: break
    case .running, .stopped:
      if world.chance(80) { world.after(.seconds(2)) { [run] in run.die(.exited(0)) } }
    }
  }

  func wake(askingBy signal: Int32?, then: @escaping (String?) -> Void) {
    operate(
      .milliseconds(50),
      { [self] in
        if signal != nil { take() }
        return world.chance(5) ? "a thread doesn't go on" : nil
      }, then)
  }

  func kill(then: @escaping (String?) -> Void) {
    if isReaped { world.count("killed its group") }
    let began = world.clock.now
    kills.append(began)
    operate(
      .milliseconds(50),
      { [self] in
        kills.remove(at: kills.firstIndex(of: began) ?? 0)
        if run.wasReleased { complain("is killed after its release") }
        if world.chance(3) { return "not permitted" }
        children = 0
        run.die(.signaled(SIGKILL))
        return nil
      }, then)
  }

  func lookForWhatIsLeft(then: @escaping (WhatIsLeft) -> Void) {
    if run.body != .dead { complain("its end is looked at while it runs") }
    operate(
      .milliseconds(30),
      { [self] in
        if world.chance(3) { return .unknown }
        return WhatIsLeft(isEmpty: children == 0, others: children)
      }, then)
  }

  func clear(then: @escaping (Clearing) -> Void) {
    if run.isUnderWay { complain("cleared while its memory is worked on") }
    if clearedAt == .zero { clearedAt = world.clock.now }
    operate(
      .milliseconds(100),
      { [self] in
        if isStubborn || world.chance(20) {
          world.count("clear failed")
          return Clearing(failure: "new ones come faster than they are ended")
        }
        children = 0
        return Clearing()
      }, then)
  }

  func reap() -> ExitStatus {
    if run.body != .dead { complain("waited for while it runs") }
    if run.isUnderWay { complain("reaped while its memory is worked on") }
    if isReaped { complain("reaped twice") }
    // One that began during the clearing disturbs nothing: it finds the same processes.
    let early = kills.filter { $0 < clearedAt && clearedAt - $0 < WorkerEnding.patience }
    if !early.isEmpty {
      complain("reaped while a SIGKILL is under way")
    }
    isReaped = true
    if children > 0 { world.count("left behind") }
    return run.status
  }

  func removeGroup(then: @escaping (String?) -> Void) {
    if !isReaped { complain("its group is removed before it is reaped") }
    operate(.milliseconds(50), { [self] in world.chance(5) ? "busy" : nil }, then)
  }

  func readLastLines(then: @escaping ([String]?) -> Void) {
    operate(.milliseconds(50), { ["no such port"] }, then)
  }

  // MARK: host

  let stopSignal = SIGTERM
  var isMemoryUnverified: Bool { run.sleep?.isMemoryUnverified == true }
  var isActedOn: Bool { run.sleep?.isActing == true }
  var isTerminating: Bool { world.driver.state.state(of: run.id) == .terminating }
  var isExternal: Bool { run.isExternal }
  var isUnexpected: Bool { !isTerminating }

  func stopListening() { run.wakeWatch?.stop() }
  func willBeAsked() {}

  func runStopCommand(then ask: @escaping () -> Void) -> Bool { false }

  func announceEnd(then ask: @escaping () -> Void) -> Bool {
    guard world.chance(30) else { return false }
    world.after(.seconds(1)) { [run] in
      if !run.hasEnded, run.ending?.isKilled == false { ask() }
    }
    return true
  }

  func rootHasEnded() {
    if run.body != .dead { complain("takes it for ended") }
    if isOver { complain("ends again after its end") }
    run.wakeWatch?.stop()
    world.runs.stopWatching(run)
  }

  func externalRootHasEnded() {
    if !run.isExternal { complain("taken for another program's") }
    if let runtime = world.workers[run.id], world.run(of: run.id) === run {
      world.externals.externalRootHasEnded(runtime)
    }
  }
  func isReaped(_ status: ExitStatus, leavingBehind others: Int) {}

  func isGone(_ status: ExitStatus, lastLines: [String]?) {
    if isOver { complain("reported as ended twice") }
    if !isReaped { complain("reported as ended before it was reaped") }
    isOver = true
    world.runs.ended(run, status)
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) {}
}
