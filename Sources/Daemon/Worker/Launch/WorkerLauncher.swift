import Lifecycle
import Linux
import Policy

/// The steps of a launch, in their order.
enum LaunchStep: CaseIterable {
  /// Checks that no process of an earlier instance is left, looks up the user, and creates the
  /// cgroup.
  case terms
  /// Opens the `listen` sockets that have a file.
  case sockets
  /// Creates the sockets between the worker and the daemon.
  case channels
  /// Opens the program and the log, and forks the process.
  case fork
  /// The process executes the program.
  case program
}

/// One launch of one worker, whose steps are performed on other threads. Tests have a fake.
protocol Launch: AnyObject {
  /// The reason for which the launch can't begin, as a sentence without its full stop; nil: it can.
  var obstacle: String? { get }
  /// The steps that this launch needs, in their order.
  var steps: [LaunchStep] { get }
  /// False if the worker has been removed meanwhile.
  var isWanted: Bool { get }
  /// The pid of the new process, a child of this one that only this launch may wait for.
  var pid: Int32? { get }

  /// Performs a step. `then` is called once, on the loop, with the reason if the step has failed.
  /// It is called after `limit` at the latest, and perhaps before this returns. If `undo` has been
  /// called, what a step still creates is removed again.
  func perform(
    _ step: LaunchStep, within limit: Duration, then: @escaping (_ refusal: String?) -> Void)

  /// Removes what the steps have created: process, channels, cgroup. `then` is called once, on the
  /// loop, when the worker can be launched again.
  func undo(then: @escaping () -> Void)

  /// The worker's program runs. The engine learns this next.
  func programDidStart()
  /// The engine knows that the worker's program runs.
  func didLaunch()
  /// Nothing is left of the launch. If its worker is still wanted, the engine knows that it failed.
  func didFail()
  func log(_ priority: DaemonLog.Priority, _ text: String)
}

/// Launches workers for the engine: at most one launch of each worker at a time. A launch performs
/// one step after the other, each with a deadline, and has exactly one outcome, `launched` or
/// `launchFailed`. One that fails, or that isn't wanted any more, leaves nothing behind. Belongs to
/// the loop's thread.
final class WorkerLauncher: EngineObserver {
  /// The time limit of a step. A file system that is mounted at its first use needs some seconds.
  static let stepTimeout = Duration.seconds(10)
  /// The time limit for the outcome of a step, after which it counts as lost. It is longer than
  /// that of the step.
  static let lossTimeout = Duration.seconds(15)
  /// The time limit of `undo`: it may have to wait for two steps, and for earlier jobs about the
  /// same worker.
  static let undoTimeout = Duration.seconds(30)

  private let driver: EngineDriver
  private let workers: WorkerRegistry
  private let timers: any Timers
  /// Makes the launch of a worker; nil: there is no such worker.
  private let makeLaunch: (WorkerID) -> (any Launch)?
  private let turns: LaunchTurns
  private var attempts: [WorkerID: Attempt] = [:]

  /// A launch that is in progress.
  private struct Attempt {
    let launch: any Launch
    var steps: ArraySlice<LaunchStep>
    let operation: TimedOperation
  }

  init(
    driver: EngineDriver, workers: WorkerRegistry, timers: any Timers,
    machine: LaunchTurns.Machine = .local, makeLaunch: @escaping (WorkerID) -> (any Launch)?
  ) {
    self.driver = driver
    self.workers = workers
    self.timers = timers
    self.makeLaunch = makeLaunch
    turns = LaunchTurns(timers: timers, machine: machine)
  }

  /// The pids of children of this process that only their launches may wait for.
  var pids: [Int32] { attempts.values.compactMap { $0.launch.pid } }

  func launch(_ id: WorkerID) {
    // If a launch is in progress, its outcome answers both requests. If its worker was removed, and
    // another one has the name, that one is launched when nothing is left of the first launch.
    guard attempts[id] == nil, let launch = makeLaunch(id) else { return }
    if let obstacle = launch.obstacle {
      return driver.send(.launchFailed(id, obstacle))
    }
    attempts[id] = Attempt(
      launch: launch, steps: launch.steps[...], operation: TimedOperation(timers))
    workers.launching.insert(id)
    // Nothing waits for an automatic start or restart.
    let isWanted =
      switch driver.state.snapshot(of: id)?.cause {
      case .starting(.autostart, _)?, .starting(.restart, _)?: false
      default: true
      }
    turns.enqueue(id, isWanted: isWanted) { [unowned self] in proceed(id) }
  }

  /// Performs the next step, or ends the launch after the last one.
  private func proceed(_ id: WorkerID) {
    guard let attempt = attempts[id] else { return }
    guard attempt.launch.isWanted else { return undo(id, because: nil) }
    guard let step = attempts[id]?.steps.popFirst() else {
      end(id)
      attempt.launch.programDidStart()
      driver.send(.launched(id))
      return attempt.launch.didLaunch()
    }
    let lost: String? = "no outcome of its step `\(step)`"
    attempt.operation.begin(within: Self.lossTimeout, orElse: lost) {
      attempt.launch.perform(step, within: Self.stepTimeout, then: $0)
    } then: { [unowned self] (refusal: String?) in
      if let refusal { undo(id, because: refusal) } else { proceed(id) }
    }
  }

  /// - Parameter failure: nil: the worker was removed between two steps.
  private func undo(_ id: WorkerID, because failure: String?) {
    guard let attempt = attempts[id] else { return }
    attempt.operation.begin(within: Self.undoTimeout, orElse: false) { done in
      attempt.launch.undo { done(true) }
    } then: { [unowned self] isUndone in
      if !isUndone {
        attempt.launch.log(.warning, "can't undo its launch within \(Self.undoTimeout.text)")
      }
      end(id)
      turns.end(id)
      conclude(attempt.launch, of: id, failure)
    }
  }

  /// Reports a launch of which nothing is left. Another worker may have the name by now: the
  /// failure isn't that worker's, and a launch of it that was requested meanwhile begins now.
  private func conclude(_ launch: any Launch, of id: WorkerID, _ failure: String?) {
    if launch.isWanted {
      if let failure { driver.send(.launchFailed(id, failure)) }
    } else if driver.state.state(of: id) == .launching {
      return self.launch(id)
    }
    launch.didFail()
  }

  private func end(_ id: WorkerID) {
    attempts[id] = nil
    workers.launching.remove(id)
  }

  /// Ends the launch's share of `turns` when its worker is ready, or has ended before that.
  func handled(_ event: Event, directives: [Directive], engine: Engine, at now: Instant) {
    for id in turns.countedWorkers where attempts[id] == nil && engine.state(of: id) != .launching {
      turns.end(id)
    }
  }
}
