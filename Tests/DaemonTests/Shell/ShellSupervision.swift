import Control
import Lifecycle
import Policy

@testable import Daemon

/// The real `RestartSupervisor`, `DependencyStarter`, `WorkerSupervision` and `StartConfirmation`
/// over a simulated world. They are connected as the daemon connects them.
final class ShellSupervision {
  private unowned let world: ShellWorld
  /// Workers whose restart rules have changed since they ended.
  private var changedSince: Set<WorkerID> = []
  let restarts: RestartSupervisor
  let starter: DependencyStarter
  private(set) lazy var listening = ListeningSockets(
    watches: world.clock, timers: world.clock, jobs: world.processes.jobs,
    files: world.processes.services.socketFiles, declared: world.declared)
  private(set) lazy var reloads = WorkerReloads(
    requests: world.requests, wrappers: world.wrappers, restarts: restarts,
    hibernation: world.processes.hibernation)
  private(set) lazy var real = WorkerSupervision(
    workers: world.workers, restarts: restarts, starter: starter, reloads: reloads,
    liveness: world.liveness.supervisor, listening: listening)
  private(set) lazy var startConfirmation = StartConfirmation(
    requests: world.requests, restarts: restarts,
    scanner: ProcessScanner(world.clock, launchedAt: restarts.launchedAt) {
      [unowned world] then in
      world.count("first look")
      world.after(.milliseconds(100), rarely: .seconds(8)) {
        let scan =
          world.chance(10) ? nil : world.processes.scan(afterTicks: world.pick([3, 30]))
        world.report(late: .seconds(30), twice: .seconds(10)) { then(scan) }
      }
    })
  /// Workers that a person has stopped since they last began to run.
  private var stoppedByOperator: Set<WorkerID> = []

  init(_ world: ShellWorld) {
    self.world = world
    restarts = RestartSupervisor(
      timers: world.clock, wallClock: { [clock = world.clock] in clock.now.nanoseconds },
      stoppedFile: "/nowhere/stopped", files: FakeStateFiles(), phase: world.phase,
      driver: world.driver, workers: world.workers, log: world.processes.log)
    starter = DependencyStarter(restarts: restarts, requests: world.requests)
    restarts.connect(starter)
  }

  /// Records a request that the engine has got.
  func record(_ request: Request) {
    if request.occasion == nil, request.verb == .stop || request.verb == .terminate {
      stoppedByOperator.insert(request.worker)
    }
  }

  func record(_ transition: Transition) {
    if transition.to == .launching {
      stoppedByOperator.remove(transition.worker)
      changedSince.remove(transition.worker)
    }
    real.supervise(transition)
  }

  func removeWorker(_ id: WorkerID) { world.runs.recordRemovals { real.removeWorker(id) } }

  func rulesWillChange(of id: WorkerID) {
    if state(of: id) == .terminated { changedSince.insert(id) }
  }

  /// How a worker ended that `restart: always` should have restarted; nil: it runs, or may be down.
  func forgotten(_ id: WorkerID) -> String? {
    guard world.workers[id]?.configuration.restart.condition == .always,
      !stoppedByOperator.contains(id), !changedSince.contains(id), state(of: id) == .terminated,
      restarts.histories[id]?.problem == nil, restarts.histories[id]?.plan == nil,
      starter.awaited(by: id) == nil, let cause = world.driver.state.snapshot(of: id)?.cause
    else { return nil }
    switch cause {
    case .requested, .added, .released: return nil
    default: return "\(cause)"
    }
  }

  private func state(of id: WorkerID) -> WorkerState? { world.driver.state.state(of: id) }
}

/// No wrapper registers with the simulated daemon.
final class NoWrappers: WrapperHost {
  func ask(
    _ request: ControlRequest, at socket: String, timeout: Duration,
    then respond: @escaping (ControlResponse) -> Void
  ) {}
  func process(of client: ClientID) -> Int32? { nil }
  func kill(_ pid: Int32, startedBefore moment: Instant) -> Bool { false }
  func log(_ priority: DaemonLog.Priority, _ text: String) {}
}
