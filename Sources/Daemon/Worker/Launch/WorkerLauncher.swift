import Lifecycle
import Linux
import Policy
import Supervision

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
  var pids: [Int32] { attempts.values.compactMap { $0.launch.pid } }

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

/// The components that take part in launches, and what is done with them. Belongs to the loop's
/// thread.
struct WorkerLaunches: LaunchHost {
  let services: Services
  let recordWriter: WorkerRecordWriter
  let conversations: WorkerConversations
  let processes: ProcessHolder
  let ends: WorkerEnds

  var workers: WorkerRegistry { ends.workers }
  var listening: ListeningSockets { ends.listening }
  var planner: LaunchPlanner { ends.launchPlanner }

  func steps(ofLaunching id: WorkerID) -> (any LaunchSteps)? {
    workers[id].map { WorkerLaunch($0, self) }
  }

  /// Refuses a launch while a process runs that an earlier daemon has left and this one couldn't
  /// adopt. Two workers with one name would share an image, and each would destroy the memory of
  /// the other.
  func obstacle(toLaunching id: WorkerID) -> String? {
    guard let record = services.records.record(of: id.name),
      record.life(bootID: recordWriter.bootID) != .hasEnded
    else { return nil }
    return "its process from an earlier daemon still runs and can't be adopted: end it "
      + "with `kill -9 \(record.process.pid)`, or restart the daemon"
  }

  func programDidStart(_ id: WorkerID) {
    guard let worker = workers[id], let process = worker.process else { return }
    worker.recordLaunch()
    ends.program?.didLaunch()
    // The record now contains what is known only after the launch.
    recordWriter.save(worker, state: .launching)
    services.log(.info, "\(id): launched as pid \(process.identity.pid)")
  }

  func didLaunch(_ id: WorkerID) {
    guard let worker = workers[id] else { return }
    ends.kernelKills.begin(worker)
    conversations.startWatchdog(of: worker)
    ends.supervision.starter.advance()
    worker.readiness?.begin()
  }

  func launchDidFail(_ id: WorkerID) {
    if let worker = workers[id] { ends.didEnd(worker) }
  }

  func log(_ id: WorkerID, _ text: String) {
    services.log(.warning, "\(id): \(text)")
  }
}
