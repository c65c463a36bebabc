import Lifecycle
import Supervision

@testable import Daemon

/// All runs, from the attachment of a process until nothing of the run is left, under the real
/// `ProcessHolder`.
final class ShellRuns {
  private unowned let world: ShellWorld
  private var runs: [WorkerID: ShellRun] = [:]
  private(set) lazy var holder = ProcessHolder(
    loop: world.clock, jobs: world.processes.jobs, processes: world.processes.fake,
    probes: world.liveness, sleeps: world.sleeps, ends: world.ends)
  /// Objects of runs that are over, and workers that have been removed.
  private var past: [(what: String, object: Weak)] = []
  /// Workers that have had a run.
  private var units: [Weak] = []
  /// Workers of whose run nothing is left, before the engine is informed.
  private var cleared: Set<WorkerID> = []

  private struct Weak { weak var object: AnyObject? }

  init(_ world: ShellWorld) { self.world = world }

  subscript(id: WorkerID) -> ShellRun? { runs[id] }
  var all: [ShellRun] { runs.values.sorted { $0.id < $1.id } }
  func run(of process: WorkerProcess) -> ShellRun? { runs.values.first { $0.process === process } }

  /// An object that outlives its run or its worker; nil: none.
  var remains: String? {
    if let object = past.first(where: { $0.object.object != nil }) { return object.what }
    return units.lazy.compactMap { $0.object as? WorkerUnit }.first { [world] in
      world.workers[$0.id] !== $0
    }.map { "\($0.id) itself, which was removed," }
  }

  // MARK: begin

  func attach(_ run: ShellRun, to worker: WorkerUnit) throws {
    begin(run)
    try holder.attach(run.process, to: worker)
    startWorking(run, worker)
  }

  /// Adds a run whose process is attached.
  private func begin(_ run: ShellRun) {
    if runs[run.id] != nil { world.complain("\(run.id) runs twice") }
    runs[run.id] = run
  }

  /// Adds a run that an earlier daemon has begun.
  func beginAdopted(_ run: ShellRun) {
    begin(run)
    world.clock.after(.zero) { [self] in
      if runs[run.id] === run, let worker = world.workers[run.id] { startWorking(run, worker) }
    }
  }

  private func startWorking(_ run: ShellRun, _ worker: WorkerUnit) {
    if world.chance(50) { worker.traffic = world.processes.traffic }
    if world.chance(40), world.workers[run.id] === worker {
      world.driver.send(
        .channelsChanged(run.id, canShed: worker.profile.canShed, canAnswer: true))
    }
    run.begin()
  }

  /// The engine knows that the worker's program runs.
  func didLaunch(_ id: WorkerID) {
    guard let run = runs[id] else { return }
    world.workers[id]?.readiness?.begin()
    world.after(.seconds(1)) { [self] in
      guard runs[id] === run, let worker = world.workers[id] else { return }
      if let readiness = worker.readiness {
        readiness.didReportReady()
      } else {
        world.driver.send(.ready(id))
      }
    }
  }

  // MARK: end

  func launchDidFail(_ id: WorkerID) {
    guard let worker = world.workers[id] else { return }
    // The worker isn't declared any more, and its removal only waited for the launch.
    if world.driver.state.state(of: id) == nil { world.supervision.removeWorker(id) }
    if !worker.isDeclared { recordRemovals { world.ends.forgetOldRuns(after: id) } }
  }

  /// Removes the run. `WorkerEnds` removes the worker's image at this moment.
  func didClear(_ name: String) {
    let id = WorkerID(name)
    world.images.remove(id)
    guard let worker = world.workers[id] else { return }
    let (old, run) = (worker.run, runs.removeValue(forKey: id))
    let parts: [(String, AnyObject?)] = [
      ("run", old), ("sleep", old.sleep), ("end", old.ending), ("watch of inputs", old.wakeWatch),
      ("liveness monitor", old.liveness), ("readiness watch", old.readiness),
      ("request for memory", old.shed),
    ]
    for (what, object) in parts {
      if let object { past.append(("\(id): its \(what)", Weak(object: object))) }
    }
    units.append(Weak(object: worker))
    guard let run else { return }
    if run.isExternal { world.externalHost.didRelease(run, worker.external?.rule) }
    cleared.insert(id)
    // The questions of the run are dropped by then.
    world.clock.after(.zero) { [unowned world] in world.liveness.forget(run) }
    if run.body == .evicted { world.complain("\(id) is let go of without its memory") }
    if !run.isExternal, !run.deeds.isReaped {
      world.complain("\(id) is reported as ended before it was reaped")
    }
  }

  /// The engine is informed that the worker has ended.
  func didEnd(_ id: WorkerID, _ status: ExitStatus) {
    if cleared.remove(id) == nil, status != .unknown { world.complain("\(id) has ended twice") }
  }

  /// Checks that no worker with a run is removed.
  func check() {
    for run in runs.values {
      if world.workers[run.id] != nil {
        run.wasRegistered = true
      } else if run.wasRegistered {
        world.complain("\(run.id) is removed, and runs (\(run.body.rawValue))")
      }
    }
  }

  /// Performs an action that may remove workers from the registry, and records the removals.
  func recordRemovals(_ action: () -> Void) {
    let before = Array(world.workers.values)
    action()
    for worker in before where world.workers[worker.id] == nil {
      let id = worker.id
      if let run = runs[id] {
        world.complain("\(id) is removed, and runs (\(run.body.rawValue))")
      }
      past.append(("\(id) itself, which was removed", Weak(object: worker)))
    }
  }
}
