import Hibernation
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

@testable import Daemon

/// The runs that there are, from the moment at which a process is held until nothing of it is left: the real
/// `ProcessHolder` and `EndedRuns`.
final class ShellRuns: ProcessHost {
  private unowned let world: ShellWorld
  private var runs: [WorkerID: ShellRun] = [:]
  private(set) lazy var holder = ProcessHolder(
    loop: world.clock, jobs: world.processes.jobs, processes: world.processes.fake,
    probes: world.liveness, driver: world.driver, log: world.processes.log, host: self)
  private lazy var ended = EndedRuns(
    driver: world.driver, workers: world.workers, requests: world.requests,
    supervision: world.supervision.real, limit: 2)
  /// Parts of runs that are over, and workers that have been removed.
  private var past: [(what: String, object: Weak)] = []

  private struct Weak { weak var object: AnyObject? }

  init(_ world: ShellWorld) { self.world = world }

  subscript(id: WorkerID) -> ShellRun? { runs[id] }
  var all: [ShellRun] { runs.values.sorted { $0.id < $1.id } }
  func run(of process: WorkerProcess) -> ShellRun? { runs.values.first { $0.process === process } }

  /// What outlives its run, or its worker; nil: nothing.
  var remains: String? { past.first { $0.object.object != nil }.map(\.what) }

  // MARK: their beginning

  func attach(_ run: ShellRun, to runtime: WorkerUnit) throws {
    begin(run)
    try hold(run, runtime)
    settle(run, runtime)
  }

  /// Its process is held.
  func begin(_ run: ShellRun) {
    if runs[run.id] != nil { world.complain("\(run.id) runs twice") }
    runs[run.id] = run
  }

  private func settle(_ run: ShellRun, _ runtime: WorkerUnit) {
    if world.chance(50) { runtime.traffic = world.processes.traffic }
    if world.chance(40) {
      world.driver.send(
        .channelsChanged(run.id, canShed: runtime.profile.canShed, canAnswer: true))
    }
    run.begin()
  }

  private func hold(_ run: ShellRun, _ runtime: WorkerUnit) throws {
    run.makeEnding(for: runtime)
    try holder.attach(run.process, to: runtime)
  }

  /// The engine has heard that it runs.
  func hasLaunched(_ id: WorkerID) {
    guard let run = runs[id] else { return }
    world.workers[id]?.readiness?.begin()
    world.after(.seconds(1)) { [self] in
      guard runs[id] === run, let runtime = world.workers[id] else { return }
      if let readiness = runtime.readiness {
        readiness.saidReady()
      } else {
        world.driver.send(.ready(id))
      }
    }
  }

  /// Another process of its group stands for an external worker from now on.
  func takeSuccessor(_ runtime: WorkerUnit) -> ShellRun? {
    guard let run = runs[runtime.id], run.takeSuccessor() else { return nil }
    do { try hold(run, runtime) } catch { world.complain("\(error)") }
    return run
  }

  // MARK: their end

  /// As `EndOfWorker` does.
  func ended(_ run: ShellRun, _ status: ExitStatus) {
    let id = run.id
    guard runs[id] === run, let runtime = world.workers[id] else {
      return world.complain("\(id) has ended twice")
    }
    clearAway(runtime)
    world.saved.remove(id.name)
    world.driver.send(.exited(id, status))
    isOver(runtime)
  }

  func launchHasFailed(_ id: WorkerID) {
    if let runtime = world.workers[id] { isOver(runtime) }
  }

  private func isOver(_ runtime: WorkerUnit) {
    let id = runtime.id
    // No longer declared: it was only waited for.
    if world.driver.state.state(of: id) == nil { world.supervision.removeWorker(id) }
    if !runtime.isDeclared { noteRemovals { ended.forgetOldRuns(after: id) } }
  }

  /// Nothing of the run stays.
  func clearAway(_ runtime: WorkerUnit) {
    let before = runtime.profile
    let (old, run) = (runtime.run, runs.removeValue(forKey: runtime.id))
    let parts: [(String, AnyObject?)] = [
      ("run", old), ("sleep", old.sleep), ("end", old.ending), ("watch of inputs", old.wakeWatch),
      ("liveness monitor", old.liveness), ("readiness watch", old.readiness),
    ]
    for (what, part) in parts {
      if let part { past.append(("\(runtime.id): its \(what)", Weak(object: part))) }
    }
    world.images.remove(runtime.id)
    runtime.endRun(world.clock)
    if let run {
      world.liveness.forget(run)
      if run.body == .evicted { world.complain("\(run.id) is let go of without its memory") }
    }
    if runtime.profile != before { world.driver.send(runtime.channelsChanged) }
  }

  /// The engine has forgotten it, unless it still runs.
  func noteRemoval(of id: WorkerID) {
    guard world.driver.state.state(of: id) == nil, let runtime = world.workers[id] else { return }
    noteRemoval(of: runtime)
  }

  private func noteRemoval(of runtime: WorkerUnit) {
    let id = runtime.id
    if let run = runs[id] { world.complain("\(id) is removed, and runs (\(run.body.rawValue))") }
    past.append(("\(id) itself, which was removed", Weak(object: runtime)))
  }

  /// This may remove workers from the registry.
  func noteRemovals(_ action: () -> Void) {
    let before = Array(world.workers.values)
    action()
    for runtime in before where world.workers[runtime.id] == nil { noteRemoval(of: runtime) }
  }

  func stopWatching(_ run: ShellRun) {
    guard let runtime = world.workers[run.id], let token = runtime.exitWatch else { return }
    world.clock.unwatch(run.process.pidfd, token)
    runtime.exitWatch = nil
  }

  // MARK: the holder's host

  func makeSleep(for runtime: WorkerUnit) { runs[runtime.id]?.makeSleep(for: runtime) }

  func isAdopted(_ runtime: WorkerUnit) {
    guard let run = runs[runtime.id] else { return world.complain("\(runtime.id) has no run") }
    run.makeEnding(for: runtime)
    settle(run, runtime)
  }
  func rootHasEnded(_ runtime: WorkerUnit) { runtime.ending?.rootHasEnded() }

  func open(
    _ refresh: MemoryRefresh, of id: WorkerID, then: @escaping (MemoryRefresh.Outcome) -> Void
  ) {}
}
