import Lifecycle
import Policy

/// What `WorkerLauncher` needs from the daemon.
protocol LaunchHost {
  /// The steps of a launch; nil: there is no such worker.
  func steps(ofLaunching id: WorkerID) -> (any LaunchSteps)?
  /// The reason for which the launch can't begin, as a sentence without its full stop; nil: it can.
  func obstacle(toLaunching id: WorkerID) -> String?
  /// The worker's program runs. The engine learns this next.
  func programDidStart(_ id: WorkerID)
  /// The engine knows that the worker's program runs.
  func didLaunch(_ id: WorkerID)
  /// The engine knows that the launch has failed, and nothing of it is left.
  func launchDidFail(_ id: WorkerID)
  func log(_ id: WorkerID, _ text: String)
}

/// Launches workers for the engine: at most one launch of each worker at a time. Each launch has
/// exactly one outcome, `launched` or `launchFailed`. Belongs to the loop's thread.
final class WorkerLauncher: EngineObserver {
  private let driver: EngineDriver
  private let workers: WorkerRegistry
  private let timers: any Timers
  private let host: any LaunchHost
  private let turns: LaunchTurns
  private var attempts: [WorkerID: LaunchAttempt] = [:]

  init(
    driver: EngineDriver, workers: WorkerRegistry, timers: any Timers, host: any LaunchHost,
    machine: LaunchTurns.Machine = .local
  ) {
    self.driver = driver
    self.workers = workers
    self.timers = timers
    self.host = host
    turns = LaunchTurns(timers: timers, machine: machine)
  }

  /// The pids of children of this process that only their launches may wait for.
  var pids: [Int32] { attempts.values.compactMap(\.pid) }

  func launch(_ id: WorkerID) {
    // If a launch is in progress, its outcome answers both requests.
    guard attempts[id] == nil, let steps = host.steps(ofLaunching: id) else { return }
    if let obstacle = host.obstacle(toLaunching: id) {
      return driver.send(.launchFailed(id, obstacle))
    }
    let attempt = LaunchAttempt(steps, timers) { [unowned self] text in
      host.log(id, text)
    } then: { [unowned self] outcome in
      didEnd(id, outcome)
    }
    attempts[id] = attempt
    workers.launching.insert(id)
    let cause = driver.state.snapshot(of: id)?.cause
    turns.enqueue(id, isWanted: cause?.isWaitedFor ?? true) { attempt.proceed() }
  }

  private func didEnd(_ id: WorkerID, _ outcome: LaunchAttempt.Outcome) {
    attempts[id] = nil
    workers.launching.remove(id)
    switch outcome {
    case .launched:
      host.programDidStart(id)
      driver.send(.launched(id))
      host.didLaunch(id)
    case .failed(let reason):
      driver.send(.launchFailed(id, reason))
      host.launchDidFail(id)
      turns.end(id)
    case .unwanted: turns.end(id)
    }
  }

  /// Ends the launch's share of `turns` when its worker is ready, or has ended before that.
  func handled(_ event: Event, directives: [Directive], engine: Engine, at now: Instant) {
    for id in turns.countedWorkers where attempts[id] == nil && engine.state(of: id) != .launching {
      turns.end(id)
    }
  }
}

extension Cause {
  /// Something waits for this start, unlike for an automatic start or restart.
  fileprivate var isWaitedFor: Bool {
    if case .starting(.autostart, _) = self { return false }
    if case .starting(.restart, _) = self { return false }
    return true
  }
}
