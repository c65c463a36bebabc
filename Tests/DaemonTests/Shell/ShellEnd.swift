import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision

@testable import Daemon

extension WorkerEnds {
  /// Makes a `WorkerEnds` over simulated processes.
  static func ofShell(_ world: ShellWorld) -> WorkerEnds {
    let (processes, supervision) = (world.processes, world.supervision)
    world.workers.maxEndedRuns = 2
    return WorkerEnds(
      loop: world.clock, processes: ShellEnd(world), memory: world.memory, records: world.saved,
      log: processes.log, driver: world.driver, workers: world.workers, requests: world.requests,
      kernelKills: KernelKillWatch(
        clock: world.clock, driver: world.driver, jetsam: processes.jetsam,
        counts: KernelKillCounts(inGroup: { _ in nil }, onMachine: { nil }), log: { _, _ in }),
      imageDisk: world.imageDisk, snapshots: processes.snapshots, launchPlanner: world.planner,
      restarts: supervision.restarts, listening: supervision.listening,
      supervision: supervision.real, program: nil, keepLastLines: { _, _ in },
      externalRootDidEnd: { [unowned world] in world.externals.externalRootDidEnd($0) })
  }
}

/// Ends the processes of simulated workers. Operations are slow or fail, and their outcomes are
/// lost, late, or reported twice. It reports an error if an operation is requested that must never
/// be.
final class ShellEnd: WorkerProcesses {
  unowned let world: ShellWorld

  init(_ world: ShellWorld) { self.world = world }

  /// What was done to a run at its end.
  struct Deeds {
    /// Whether every attempt to end the processes that it leaves fails.
    var isStubborn: Bool
    /// When the first attempt to end them began.
    var clearedAt = Instant.zero
    var isReaped = false
    /// When each SIGKILL in progress began.
    var kills: [Instant] = []
  }

  /// Performs an operation: its effect happens after a while, and its outcome is reported after
  /// that.
  private func operate<Outcome>(
    _ name: String, _ longest: Duration, _ effect: @escaping (ShellRun) -> Outcome,
    _ then: @escaping (Outcome) -> Void
  ) {
    guard let run = world.run(of: WorkerID(name)) else {
      return world.complain("\(name) is ended, and has no run")
    }
    // An operation on a run's processes may outlive the run.
    world.after(longest, rarely: .seconds(40)) { [unowned world] in
      let outcome = effect(run)
      world.report(late: .seconds(100), twice: .seconds(60)) { then(outcome) }
    }
  }

  func openMemory(
    _ refresh: MemoryRefresh, of name: String, then: @escaping (MemoryRefresh.Outcome) -> Void
  ) {}

  func ask(_ process: WorkerProcess, of name: String, by signal: Int32) {
    guard let run = world.run(of: WorkerID(name)) else { return }
    world.after(.milliseconds(50)) { [self] in handleSignal(run) }
  }

  /// Handles a signal that asks the process to end. A stopped process continues to handle it.
  private func handleSignal(_ run: ShellRun) {
    if run.children > 0, world.chance(70) { world.after(.seconds(1)) { run.children = 0 } }
    switch run.body {
    case .evicted: run.complain("sent SIGTERM without memory to run in")
    case .unverifiable, .dead: break
    case .running, .stopped:
      if world.chance(80) { world.after(.seconds(2)) { run.die(.exited(0)) } }
    }
  }

  func wake(
    _ target: HibernationTarget, _ process: WorkerProcess, missing: MissingBytes?,
    askingBy signal: Int32?, then: @escaping (String?) -> Void
  ) {
    operate(
      target.name, .milliseconds(50),
      { [self] run in
        if signal != nil { handleSignal(run) }
        return world.chance(5) ? "a thread doesn't go on" : nil
      }, then)
  }

  func kill(_ process: WorkerProcess, of name: String, then: @escaping (String?) -> Void) {
    let run = world.run(of: WorkerID(name))
    if run?.deeds.isReaped == true { world.count("killed its group") }
    let began = world.clock.now
    run?.deeds.kills.append(began)
    operate(
      name, .milliseconds(50),
      { [unowned world] run in
        if let index = run.deeds.kills.firstIndex(of: began) { run.deeds.kills.remove(at: index) }
        if run.didRelease { run.complain("is killed after its release") }
        if world.chance(3) { return "not permitted" }
        run.children = 0
        run.die(.signaled(SIGKILL))
        return nil
      }, then)
  }

  func findRemainingProcesses(
    of process: WorkerProcess, then: @escaping (RemainingProcesses) -> Void
  ) {
    guard let run = world.runs.run(of: process) else {
      return world.complain("a run that is over is looked at")
    }
    if run.body != .dead { run.complain("its end is looked at while it runs") }
    operate(
      run.id.name, .milliseconds(30),
      { [unowned world] run in
        if world.chance(3) { return .unknown }
        return RemainingProcesses(isEmpty: run.children == 0, others: run.children)
      }, then)
  }

  func clear(
    _ process: WorkerProcess, of name: String, mark: String, notify: String?,
    then: @escaping (Clearing) -> Void
  ) {
    if let run = world.run(of: WorkerID(name)) {
      if run.isUnderWay { run.complain("cleared while its memory is worked on") }
      if run.deeds.clearedAt == .zero { run.deeds.clearedAt = world.clock.now }
    }
    operate(
      name, .milliseconds(100),
      { [unowned world] run in
        if run.deeds.isStubborn || world.chance(20) {
          world.count("clear failed")
          return Clearing(failure: "new ones come faster than they are ended")
        }
        run.children = 0
        return Clearing()
      }, then)
  }

  func reap(_ process: WorkerProcess, of name: String) -> WorkerExit {
    guard let run = world.run(of: WorkerID(name)) else {
      world.complain("\(name) is reaped, and has no run")
      return .unknown
    }
    if run.body != .dead { run.complain("waited for while it runs") }
    if run.isUnderWay { run.complain("reaped while its memory is worked on") }
    if run.deeds.isReaped { run.complain("reaped twice") }
    // A SIGKILL that began during the clearing does no harm, because it finds the same processes.
    let clearedAt = run.deeds.clearedAt
    let early = run.deeds.kills.filter {
      $0 < clearedAt && clearedAt - $0 < WorkerEnding.timeout
    }
    if !early.isEmpty { run.complain("reaped while a SIGKILL is under way") }
    run.deeds.isReaped = true
    if run.children > 0 { world.count("left behind") }
    return run.exit
  }

  func removeGroup(
    of process: WorkerProcess, _ name: String, then: @escaping (String?) -> Void
  ) {
    if world.run(of: WorkerID(name))?.deeds.isReaped == false {
      world.complain("\(name): its group is removed before it is reaped")
    }
    operate(
      name, .milliseconds(50), { [unowned world] _ in world.chance(5) ? "busy" : nil }, then)
  }

  func readLastLines(
    of process: WorkerProcess, _ name: String, then: @escaping ([String]?) -> Void
  ) { operate(name, .milliseconds(50), { _ in ["no such port"] }, then) }
}

/// Checks what must never be left when the daemon has ended.
final class ShellDaemonEnd {
  private unowned let world: ShellWorld
  /// The requests to wake a worker that arrived while the daemon was leaving.
  private var wakes: [Request.ID: WorkerID] = [:]
  /// Workers that couldn't be woken before the daemon left, which was logged.
  private var failedWakes: Set<WorkerID> = []

  init(_ world: ShellWorld) { self.world = world }

  func record(_ event: Event, _ directives: [Directive]) {
    if case .request(let request) = event, request.verb == .wake, world.phase.isLeaving {
      wakes[request.id] = request.worker
    }
    for case .answer(let request, let answer) in directives where answer.code != .done {
      if let id = wakes[request] { failedWakes.insert(id) }
    }
  }

  /// What is wrong now that the daemon has ended; nil: nothing.
  var omission: String? {
    for run in world.runs.all where run.body != .dead {
      guard world.phase.isLeaving else {
        return "\(run.id) outlives the daemon, which was to stop it (\(run.body.rawValue))"
      }
      if run.body == .running || run.body == .unverifiable { continue }
      // SIGKILL failed, and the daemon doesn't wait for the process. The next daemon finds it as it
      // is.
      if world.driver.state.hasOutlivedKill(run.id) { continue }
      // A frozen worker sleeps on without a daemon; one that is stopped by a signal doesn't.
      if !world.hasFreezer, !failedWakes.contains(run.id) {
        return "\(run.id) is left without a daemon, and nothing keeps it (\(run.body.rawValue))"
      }
      // A record that is older than the process is detected by recovery; without a record, the
      // worker would be lost.
      if world.saved.lastSaved[run.id.name] == nil { return "\(run.id) is left without a record" }
    }
    return nil
  }
}
